// libacl_op_compiler.so. torch_npu falls back to compiled operators when libopapi.so lacks an aclnn
// op; of that path only casts of storage formats are emulated.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "acl/acl_op_compiler.h"
#include "custom_pypto_simulator/runtime.h"
#include "format_cast.h"

struct aclopAttr {};

namespace {

aclError refuse(const char* op) {
  const std::string text =
      "the op '" + std::string(op) +
      "' has no aclnn function in the simulated libopapi.so, so that torch_npu took the compiled "
      "operator, which is not emulated. Add the op to custom_pypto_simulator/csrc/opapi, or to a "
      "library of simulated kernels";
  std::fprintf(stderr, "custom_pypto_simulator: %s\n", text.c_str());
  return custom_pypto_sim_error(ACL_ERROR_OP_NOT_FOUND, text.c_str());
}

template <class Descriptions, class Buffers, class OutputBuffers>
aclError execute(const char* op, int inputs, Descriptions from, Buffers sources, int outputs,
                 Descriptions to, OutputBuffers targets, aclrtStream stream) {
  using namespace custom_pypto_simulator;
  if (std::strcmp(op, "Identity") != 0 || inputs != 1 || outputs != 1 ||
      !can_cast_format(*from[0], *to[0])) {
    return refuse(op);
  }
  return cast_format(*from[0], *sources[0], *to[0], *targets[0], stream);
}

}  // namespace

aclError aclopCompileAndExecute(const char* op, int inputs, const aclTensorDesc* const from[],
                                const aclDataBuffer* const sources[], int outputs,
                                const aclTensorDesc* const to[], aclDataBuffer* const targets[],
                                const aclopAttr*, aclopEngineType, aclopCompileType, const char*,
                                aclrtStream stream) {
  return execute(op, inputs, from, sources, outputs, to, targets, stream);
}

aclError aclopCompileAndExecuteV2(const char* op, int inputs, aclTensorDesc* from[],
                                  aclDataBuffer* sources[], int outputs, aclTensorDesc* to[],
                                  aclDataBuffer* targets[], aclopAttr*, aclopEngineType,
                                  aclopCompileType, const char*, aclrtStream stream) {
  return execute(op, inputs, from, sources, outputs, to, targets, stream);
}

// "disable": torch_npu does not compile operators just in time.
aclError aclSetCompileopt(aclCompileOpt, const char*) { return ACL_SUCCESS; }
size_t aclGetCompileoptSize(aclCompileOpt) { return sizeof "disable"; }
aclError aclGetCompileopt(aclCompileOpt, char* value, size_t size) {
  if (size < sizeof "disable") return ACL_ERROR_INVALID_PARAM;
  std::strcpy(value, "disable");
  return ACL_SUCCESS;
}

aclDataBuffer* aclCreateDataBuffer(void* data, size_t bytes) {
  return new aclDataBuffer{data, bytes};
}
aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) {
  delete buffer;
  return ACL_SUCCESS;
}

aclTensorDesc* aclCreateTensorDesc(aclDataType dtype, int dims, const int64_t* shape,
                                   aclFormat format) {
  const std::vector<int64_t> sizes(shape, shape + dims);
  return new aclTensorDesc{dtype, format, sizes, format, sizes};
}
void aclDestroyTensorDesc(const aclTensorDesc* description) { delete description; }
aclDataType aclGetTensorDescType(const aclTensorDesc* description) { return description->dtype; }
aclFormat aclGetTensorDescFormat(const aclTensorDesc* description) { return description->format; }
size_t aclGetTensorDescNumDims(const aclTensorDesc* description) {
  return description->shape.size();
}
aclError aclGetTensorDescDimV2(const aclTensorDesc* description, size_t index, int64_t* size) {
  if (index >= description->shape.size()) return ACL_ERROR_INVALID_PARAM;
  *size = description->shape[index];
  return ACL_SUCCESS;
}
void aclSetTensorDescName(aclTensorDesc*, const char*) {}
aclError aclSetTensorFormat(aclTensorDesc* description, aclFormat format) {
  description->storage_format = format;
  return ACL_SUCCESS;
}
aclError aclSetTensorPlaceMent(aclTensorDesc*, aclMemType) { return ACL_SUCCESS; }
aclError aclSetTensorShape(aclTensorDesc* description, int dims, const int64_t* shape) {
  description->storage_shape.assign(shape, shape + dims);
  return ACL_SUCCESS;
}

aclopAttr* aclopCreateAttr() { return new aclopAttr; }
void aclopDestroyAttr(const aclopAttr* attributes) { delete attributes; }
aclError aclopSetAttrBool(aclopAttr*, const char*, uint8_t) { return ACL_SUCCESS; }
aclError aclopSetAttrInt(aclopAttr*, const char*, int64_t) { return ACL_SUCCESS; }
aclError aclopSetAttrFloat(aclopAttr*, const char*, float) { return ACL_SUCCESS; }
aclError aclopSetAttrString(aclopAttr*, const char*, const char*) { return ACL_SUCCESS; }
aclError aclopSetAttrDataType(aclopAttr*, const char*, aclDataType) { return ACL_SUCCESS; }
aclError aclopSetAttrListBool(aclopAttr*, const char*, int, const uint8_t*) { return ACL_SUCCESS; }
aclError aclopSetAttrListInt(aclopAttr*, const char*, int, const int64_t*) { return ACL_SUCCESS; }
aclError aclopSetAttrListFloat(aclopAttr*, const char*, int, const float*) { return ACL_SUCCESS; }
aclError aclopSetAttrListListInt(aclopAttr*, const char*, int, const int*, const int64_t* const*) {
  return ACL_SUCCESS;
}
