// Compiled operators. torch_npu falls back to compiled operators when libopapi.so lacks an aclnn
// op; of that path only casts of storage formats are emulated.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "acl/acl_op_compiler.h"
#include "custom_pypto_simulator/runtime.h"

struct aclDataBuffer {
  void* data;
  size_t bytes;
};

struct aclTensorDesc {
  aclDataType dtype;
  aclFormat format;
  std::vector<int64_t> shape;
  aclFormat storage_format;
  std::vector<int64_t> storage_shape;
};

struct aclopAttr {};

namespace {

bool is_nz(const aclTensorDesc& tensor) { return tensor.storage_format == ACL_FORMAT_FRACTAL_NZ; }

// The element (row, column) of a matrix in memory.
int64_t place(const aclTensorDesc& matrix, int64_t row, int64_t column) {
  if (!is_nz(matrix)) return row * matrix.shape[1] + column;
  const auto& tiles = matrix.storage_shape;  // [N / tile, K / 16, 16, tile]
  const int64_t tile = column / tiles[3] * tiles[1] + row / tiles[2];
  return (tile * tiles[2] + row % tiles[2]) * tiles[3] + column % tiles[3];
}

// The one operator that is emulated, Identity, which is what torch_npu.npu_format_cast runs.
struct Copy {
  aclTensorDesc from;
  aclTensorDesc to;
  aclDataBuffer source;
  aclDataBuffer target;

  int operator()() const {
    if (is_nz(from) == is_nz(to)) {
      std::memmove(target.data, source.data, std::min(source.bytes, target.bytes));
      return ACL_SUCCESS;
    }
    std::memset(target.data, 0, target.bytes);  // padding of tiles
    const size_t size = aclDataTypeSize(from.dtype);
    for (int64_t row = 0; row < from.shape[0]; ++row) {
      for (int64_t column = 0; column < from.shape[1]; ++column) {
        std::memcpy(
            static_cast<char*>(target.data) + static_cast<size_t>(place(to, row, column)) * size,
            static_cast<const char*>(source.data) +
                static_cast<size_t>(place(from, row, column)) * size,
            size);
      }
    }
    return ACL_SUCCESS;
  }
};

bool is_known(const aclTensorDesc& tensor) {
  switch (tensor.storage_format) {
    case ACL_FORMAT_ND:
    case ACL_FORMAT_NCHW:
    case ACL_FORMAT_NHWC:
    case ACL_FORMAT_NCDHW:
      return true;
    case ACL_FORMAT_FRACTAL_NZ:
      return tensor.shape.size() == 2 && tensor.storage_shape.size() == 4;
    default:
      return false;
  }
}

// Whether `from` and `to` are one tensor in two formats that are known here: any in the same one,
// or a matrix in a plain format and in FRACTAL_NZ.
bool can_cast_format(const aclTensorDesc& from, const aclTensorDesc& to) {
  return from.dtype == to.dtype && from.shape == to.shape && is_known(from) && is_known(to);
}

template <class Descriptions, class Buffers, class OutputBuffers>
aclError execute(const char* op, int inputs, Descriptions from, Buffers sources, int outputs,
                 Descriptions to, OutputBuffers targets, aclrtStream stream) {
  if (std::strcmp(op, "Identity") == 0 && inputs == 1 && outputs == 1 &&
      can_cast_format(*from[0], *to[0])) {
    return custom_pypto_simulator::enqueue(stream, op,
                                           Copy{*from[0], *to[0], *sources[0], *targets[0]});
  }
  const std::string text =
      "the op '" + std::string(op) +
      "' has no aclnn function in the simulated libopapi.so, so that torch_npu took the compiled "
      "operator, which is not emulated. Add the op to custom_pypto_simulator/csrc/opapi, or to a "
      "library of simulated kernels";
  std::fprintf(stderr, "custom_pypto_simulator: %s\n", text.c_str());
  return custom_pypto_sim_error(ACL_ERROR_OP_NOT_FOUND, text.c_str());
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
aclError aclSetTensorFormat(aclTensorDesc* description, aclFormat format) {
  description->storage_format = format;
  return ACL_SUCCESS;
}
aclError aclSetTensorShape(aclTensorDesc* description, int dims, const int64_t* shape) {
  description->storage_shape.assign(shape, shape + dims);
  return ACL_SUCCESS;
}

aclopAttr* aclopCreateAttr() { return new aclopAttr; }
void aclopDestroyAttr(const aclopAttr* attributes) { delete attributes; }
