// libacl_op_compiler.so. torch_npu falls back to compiled operators when libopapi.so lacks an aclnn
// op; that path is not emulated. Its description objects exist so that the refusal can name the op.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "acl/acl_op_compiler.h"
#include "custom_pypto_simulator/runtime.h"

struct aclDataBuffer {};
struct aclopAttr {};
struct aclTensorDesc {
  aclDataType dtype;
  aclFormat format;
  std::vector<int64_t> shape;
};

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

}  // namespace

aclError aclopCompileAndExecute(const char* op, int, const aclTensorDesc* const*,
                                const aclDataBuffer* const*, int, const aclTensorDesc* const*,
                                aclDataBuffer* const*, const aclopAttr*, aclopEngineType,
                                aclopCompileType, const char*, aclrtStream) {
  return refuse(op);
}

aclError aclopCompileAndExecuteV2(const char* op, int, aclTensorDesc**, aclDataBuffer**, int,
                                  aclTensorDesc**, aclDataBuffer**, aclopAttr*, aclopEngineType,
                                  aclopCompileType, const char*, aclrtStream) {
  return refuse(op);
}

// "disable": torch_npu does not compile operators just in time.
aclError aclSetCompileopt(aclCompileOpt, const char*) { return ACL_SUCCESS; }
size_t aclGetCompileoptSize(aclCompileOpt) { return sizeof "disable"; }
aclError aclGetCompileopt(aclCompileOpt, char* value, size_t size) {
  if (size < sizeof "disable") return ACL_ERROR_INVALID_PARAM;
  std::strcpy(value, "disable");
  return ACL_SUCCESS;
}

aclDataBuffer* aclCreateDataBuffer(void*, size_t) { return new aclDataBuffer; }
aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) {
  delete buffer;
  return ACL_SUCCESS;
}

aclTensorDesc* aclCreateTensorDesc(aclDataType dtype, int dims, const int64_t* shape,
                                   aclFormat format) {
  return new aclTensorDesc{dtype, format, {shape, shape + dims}};
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
aclError aclSetTensorFormat(aclTensorDesc*, aclFormat) { return ACL_SUCCESS; }
aclError aclSetTensorPlaceMent(aclTensorDesc*, aclMemType) { return ACL_SUCCESS; }
aclError aclSetTensorShape(aclTensorDesc*, int, const int64_t*) { return ACL_SUCCESS; }

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
