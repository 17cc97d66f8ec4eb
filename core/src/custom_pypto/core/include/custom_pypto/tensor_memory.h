// The bytes that a tensor's elements take, and the check that its storage has them.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/placement.h>
#include <custom_pypto/torch_error.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// From the first byte of a tensor's first element to behind its last byte; 0 without elements.
inline int64_t byte_span(const Tensor& tensor, int64_t element_size) {
  const int64_t count = tensor.numel();
  if (count == 0 || tensor.is_contiguous()) return count * element_size;
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  int64_t last = 0;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) last += (sizes[dim] - 1) * strides[dim];
  return (last + 1) * element_size;
}
inline int64_t byte_span(const Tensor& tensor) {
  return byte_span(tensor, static_cast<int64_t>(tensor.element_size()));
}

inline bool is_quantised(int32_t dtype) {
  // torch's qint8, quint8, qint32, quint4x2 and quint2x4: its C interface has no names for them.
  return dtype >= 12 && dtype <= 17 && dtype != dtype_code(ScalarType::BFloat16);
}

// Refuses a tensor that has no strided elements in memory. Kernels for one kind of device get only
// some of these from torch; kernels for every device get all.
inline void expect_memory(const char* op, ArgumentName argument, const Tensor& tensor) {
  int32_t layout = 0;
  expect_success(aoti_torch_get_layout(tensor.get(), &layout), "aoti_torch_get_layout");
  if (CUSTOM_PYPTO_UNLIKELY(layout != aoti_torch_layout_strided())) {
    fail(op, argument, "must be a dense tensor; pass its to_dense()");
  }
  const int32_t dtype = dtype_code(tensor);
  if (CUSTOM_PYPTO_UNLIKELY(is_quantised(dtype))) {
    fail(op, argument, "must not be quantised; pass its dequantize()");
  }
  const auto element_size = static_cast<int64_t>(aoti_torch_dtype_element_size(dtype));
  const int64_t span = byte_span(tensor, element_size);
  if (span == 0) return;
  const int64_t needed = tensor.storage_offset() * element_size + span;
  int64_t given = 0;
  expect_success(aoti_torch_get_storage_size(tensor.get(), &given), "aoti_torch_get_storage_size");
  // Tensors on meta have no memory, whatever their storage says.
  if (CUSTOM_PYPTO_UNLIKELY(given < needed) && tensor.device().type() != DeviceType::Meta) {
    fail(op, argument, "needs a storage of ", needed, " bytes, but its storage has ", given,
         ", as after untyped_storage().resize_(0); resize the storage, or pass another tensor");
  }
}

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
