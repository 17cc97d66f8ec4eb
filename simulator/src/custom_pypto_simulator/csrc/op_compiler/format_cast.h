// The one compiled operator that is emulated: Identity between storage formats, which is what
// torch_npu.npu_format_cast runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "acl/acl.h"

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

namespace custom_pypto_simulator {

// Whether `from` and `to` are one tensor in two formats that are known here: any in the same one,
// or a matrix in a plain format and in FRACTAL_NZ.
bool can_cast_format(const aclTensorDesc& from, const aclTensorDesc& to);

// Queues the copy on the stream.
aclError cast_format(const aclTensorDesc& from, const aclDataBuffer& source,
                     const aclTensorDesc& to, const aclDataBuffer& target, aclrtStream stream);

}  // namespace custom_pypto_simulator
