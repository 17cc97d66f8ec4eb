// The order in which a tensor's elements lie on the NPU, which torch_npu may have changed
// (npu_format_cast) without its shape or strides telling.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/acl_object.h>
#include <custom_pypto/npu/cann.h>
#include <custom_pypto/npu/torch_npu.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// An aclFormat; null when this CANN does not tell, or the tensor is not on an NPU.
inline std::optional<int> storage_format(const torch::stable::Tensor& tensor) {
  if (cann().format_of == nullptr || cann().destroy_tensor == nullptr) return std::nullopt;
  const AclObject described(torch_npu().describe(tensor.get()), cann().destroy_tensor);
  int format = 0;
  if (described.get() == nullptr || cann().format_of(described.get(), &format) != 0) {
    return std::nullopt;
  }
  return format;
}

// Whether the matrix is stored as tiles of 16 columns (FRACTAL_NZ), as CANN's matrix units like it.
inline bool is_fractal_nz(const torch::stable::Tensor& tensor) {
  return storage_format(tensor) == 29;
}

// Whether the elements lie as shape and strides say: any of the formats that torch_npu gives to
// tensors that nobody has cast (ND, NCL, NCHW, NCDHW).
//
// True when this CANN does not tell: private formats come from npu_format_cast alone unless
// torch.npu.config.allow_internal_format is set, which it is not by default. To refuse every tensor
// would refuse all kernels for the sake of those few. Who casts on such a CANN has to know that
// kernels launched directly read the memory as it lies.
inline bool is_plain(const torch::stable::Tensor& tensor) {
  const std::optional<int> format = storage_format(tensor);
  return !format.has_value() || *format == 2 || *format == 47 || *format == 0 || *format == 30;
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
