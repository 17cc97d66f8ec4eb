// Uninitialised, contiguous tensors for results, allocated without the dispatcher where torch can.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/torch_error.h>

#include <array>
#include <cstddef>
#include <cstdint>

CUSTOM_PYPTO_NAMESPACE_BEGIN

using torch::headeronly::IntHeaderOnlyArrayRef;

namespace detail {

// As many dimensions as torch itself allows in its kernels.
inline constexpr std::size_t max_rank = 64;

// dtype, device_type and device_index are the numbers that libtorch's C interface uses.
inline Tensor empty_contiguous(IntHeaderOnlyArrayRef sizes, int32_t dtype, int32_t device_type,
                               int32_t device_index) {
  const std::size_t rank = sizes.size();
  if (CUSTOM_PYPTO_UNLIKELY(rank > max_rank)) {
    fail("custom_pypto::empty", "sizes", "must have at most ", max_rank, " dimensions, got ", rank);
  }
  std::array<int64_t, max_rank> strides;
  int64_t stride = 1;
  for (std::size_t dim = rank; dim-- > 0;) {
    strides[dim] = stride;
    if (sizes.data()[dim] > 1) stride *= sizes.data()[dim];
  }
  AtenTensorHandle handle = nullptr;
  const AOTITorchError code =
      aoti_torch_empty_strided(static_cast<int64_t>(rank), sizes.data(), strides.data(), dtype,
                               device_type, device_index, &handle);
  if (CUSTOM_PYPTO_UNLIKELY(code != AOTI_TORCH_SUCCESS)) {
    fail("custom_pypto::empty", "sizes", sizes, " cannot be allocated: ", torch_reason());
  }
  return Tensor(handle);
}

struct Placement {
  int32_t device_type = 0;
  int32_t device_index = 0;

  explicit Placement(const Tensor& tensor) {
    expect_success(aoti_torch_get_device_type(tensor.get(), &device_type),
                   "aoti_torch_get_device_type");
    expect_success(aoti_torch_get_device_index(tensor.get(), &device_index),
                   "aoti_torch_get_device_index");
  }
};

inline int32_t dtype_code(ScalarType dtype) {
  return torch::stable::detail::to<int32_t>(torch::stable::detail::from(dtype));
}

inline int32_t dtype_code(const Tensor& tensor) {
  int32_t code = 0;
  expect_success(aoti_torch_get_dtype(tensor.get(), &code), "aoti_torch_get_dtype");
  return code;
}

}  // namespace detail

// empty({batch, heads}, ScalarType::Float, query.device())
inline Tensor empty(IntHeaderOnlyArrayRef sizes, ScalarType dtype, const Device& device) {
  return detail::empty_contiguous(
      sizes, detail::dtype_code(dtype),
      torch::stable::detail::to<int32_t>(torch::stable::detail::from(device.type())),
      device.index());
}

// On the device of `like`; cheaper than naming it by like.device().
inline Tensor empty(IntHeaderOnlyArrayRef sizes, ScalarType dtype, const Tensor& like) {
  const detail::Placement place(like);
  return detail::empty_contiguous(sizes, detail::dtype_code(dtype), place.device_type,
                                  place.device_index);
}

// With the dtype and on the device of `like`.
inline Tensor empty(IntHeaderOnlyArrayRef sizes, const Tensor& like) {
  const detail::Placement place(like);
  return detail::empty_contiguous(sizes, detail::dtype_code(like), place.device_type,
                                  place.device_index);
}

// With shape, dtype and device of `like`; contiguous whatever the strides of `like`.
inline Tensor empty_like_contiguous(const Tensor& like) { return empty(like.sizes(), like); }

CUSTOM_PYPTO_NAMESPACE_END
