// Allocation of uninitialised, contiguous results, without the dispatcher where torch or torch_npu
// can. Large ones on CPU are in huge pages, as NumPy's arrays are.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/message.h>
#include <custom_pypto/placement.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

CUSTOM_PYPTO_NAMESPACE_BEGIN

using torch::headeronly::IntHeaderOnlyArrayRef;

namespace detail {

// The limit of torch's own kernels.
inline constexpr std::size_t kMostDims = 64;

// Allocates a tensor like `like`, which is on an NPU; nullopt: torch's C interface must do so. Null
// without npu/allocation.h, which sets it.
inline std::optional<Tensor> (*allocate_on_npu)(const Tensor& like,
                                                IntHeaderOnlyArrayRef sizes) = nullptr;

[[noreturn]] CUSTOM_PYPTO_COLD inline void fail_allocation(IntHeaderOnlyArrayRef sizes,
                                                           const std::string& reason) {
  fail("custom_pypto::empty", "sizes", sizes, " cannot be allocated: ", reason);
}

// The first write to a page is a page fault, which takes longer than most ops need for 4 KiB. Huge
// pages, which many systems give on request, have one fault instead of 512: half of all faults are
// left at 4 MiB, nearly none at 100 MiB.
inline void prefer_huge_pages([[maybe_unused]] const Tensor& tensor) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // The smallest block that contains a whole huge page at any address.
  constexpr int64_t kSmallestBlock = int64_t{4} << 20;
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  int64_t bytes = 0;
  expect_success(aoti_torch_get_storage_size(tensor.get(), &bytes), "aoti_torch_get_storage_size");
  if (bytes < kSmallestBlock) return;
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.mutable_data_ptr());
  const std::uintptr_t first = (address + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t last =
      (address + static_cast<std::uintptr_t>(bytes)) / kHugePage * kHugePage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

inline Tensor empty_contiguous(IntHeaderOnlyArrayRef sizes, int32_t dtype, Placement place) {
  const std::size_t ndim = sizes.size();
  if (CUSTOM_PYPTO_UNLIKELY(ndim > kMostDims)) {
    fail("custom_pypto::empty", "sizes", "must have at most ", kMostDims, " dimensions, got ",
         ndim);
  }
  std::array<int64_t, kMostDims> strides;
  int64_t stride = 1;
  for (std::size_t dim = ndim; dim-- > 0;) {
    strides[dim] = stride;
    const int64_t size = sizes.data()[dim];
    if (dim > 0 && size > 1 &&
        CUSTOM_PYPTO_UNLIKELY(__builtin_mul_overflow(stride, size, &stride))) {
      fail_allocation(sizes, "its strides do not fit 64 bits");
    }
  }
  AtenTensorHandle handle = nullptr;
  const AOTITorchError code =
      aoti_torch_empty_strided(static_cast<int64_t>(ndim), sizes.data(), strides.data(), dtype,
                               place.device_type, place.device_index, &handle);
  if (CUSTOM_PYPTO_UNLIKELY(code != AOTI_TORCH_SUCCESS)) {
    fail_allocation(sizes, torch_reason());
  }
  Tensor tensor(handle);
  if (place.device_type == aoti_torch_device_type_cpu()) prefer_huge_pages(tensor);
  return tensor;
}

}  // namespace detail

// empty({batch, heads}, ScalarType::Float, query.device())
inline Tensor empty(IntHeaderOnlyArrayRef sizes, ScalarType dtype, const Device& device) {
  const auto type = torch::stable::detail::to<int32_t>(torch::stable::detail::from(device.type()));
  return detail::empty_contiguous(sizes, detail::dtype_code(dtype), {type, device.index()});
}

// On the device of `like`; cheaper than passing like.device().
inline Tensor empty(IntHeaderOnlyArrayRef sizes, ScalarType dtype, const Tensor& like) {
  return detail::empty_contiguous(sizes, detail::dtype_code(dtype), detail::placement_of(like));
}

// With the dtype and on the device of `like`.
inline Tensor empty(IntHeaderOnlyArrayRef sizes, const Tensor& like) {
  const detail::Placement place = detail::placement_of(like);
  if (detail::allocate_on_npu != nullptr &&
      place.device_type == aoti_torch_device_type_privateuse1()) {
    try {
      std::optional<Tensor> result = detail::allocate_on_npu(like, sizes);
      if (result.has_value()) return *std::move(result);
    } catch (const std::exception& error) {
      detail::fail_allocation(sizes, detail::reason_of(error));
    }
  }
  return detail::empty_contiguous(sizes, detail::dtype_code(like), place);
}

// With shape, dtype and device of `like`; contiguous whatever the strides of `like`.
inline Tensor empty_like_contiguous(const Tensor& like) { return empty(like.sizes(), like); }

CUSTOM_PYPTO_NAMESPACE_END
