// Results on an NPU, allocated as torch_npu's own ops allocate theirs. torch's C interface has only
// empty_strided, for which torch_npu makes an empty tensor and then resizes it. That interface is
// used without CUSTOM_PYPTO_NPU_ALLOCATION=1, and if the check at the first use fails.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/torch_npu.h>
#include <custom_pypto/placement.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {
namespace detail {

// Passed as at::Tensor and c10::IntArrayRef are: because of its destructor the caller says where
// the result is made.
struct ReturnedTensor {
  ReturnedTensor(const ReturnedTensor&) = delete;
  // The tensor belongs to the handle that its memory becomes.
  ~ReturnedTensor() {}
  void* implementation;
};
using ApplyTensor = ReturnedTensor (*)(const void* like, IntHeaderOnlyArrayRef sizes);

// Null unless it is switched on, or where there is no torch_npu that has it.
inline ApplyTensor find_apply_tensor() {
  if (!is_switched_on(kAllocationVariable, false)) return nullptr;
  ApplyTensor found = nullptr;
  custom_pypto::detail::find_loaded("libtorch_npu.so",
                                    "_ZN6at_npu6native13OpPreparation27apply_tensor_"
                                    "without_formatERKN2at6TensorEN3c108ArrayRefIlEE",
                                    found);
  return found;
}

inline Tensor call(ApplyTensor apply_tensor, const Tensor& like, IntHeaderOnlyArrayRef sizes) {
  struct Delete {
    void operator()(void* memory) const noexcept { ::operator delete(memory); }
  };
  std::unique_ptr<void, Delete> memory(::operator new(sizeof(ReturnedTensor)));
  new (memory.get()) ReturnedTensor(apply_tensor(like.get(), sizes));
  // A handle is an at::Tensor that torch deletes.
  return Tensor(static_cast<AtenTensorHandle>(memory.release()));
}

// How `actual` differs from `expected`; "" when it does not.
inline std::string difference(const Tensor& actual, const Tensor& expected) {
  using custom_pypto::detail::placement_of;
  if (!(placement_of(actual) == placement_of(expected))) return "on another device";
  if (actual.scalar_type() != expected.scalar_type()) return "of another dtype";
  const auto equal = [](const auto& one, const auto& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end());
  };
  if (!equal(actual.sizes(), expected.sizes())) return "of another shape";
  if (!equal(actual.strides(), expected.strides())) return "of other strides";
  return "";
}

// The function if it gives what torch's C interface does, for a small tensor; else null, with a
// warning. Throws when torch cannot allocate.
CUSTOM_PYPTO_COLD inline ApplyTensor checked(ApplyTensor apply_tensor, const Tensor& like) {
  if (apply_tensor == nullptr) return nullptr;
  const std::array<int64_t, 2> sizes{2, 3};
  const std::array<int64_t, 2> strides{3, 1};
  const custom_pypto::detail::Placement place = custom_pypto::detail::placement_of(like);
  AtenTensorHandle handle = nullptr;
  custom_pypto::detail::expect_success(
      aoti_torch_empty_strided(2, sizes.data(), strides.data(),
                               custom_pypto::detail::dtype_code(like), place.device_type,
                               place.device_index, &handle),
      "aoti_torch_empty_strided");
  const Tensor expected(handle);
  std::string reason;
  try {
    reason = difference(call(apply_tensor, like, sizes), expected);
    if (reason.empty()) return apply_tensor;
    reason = "its result is " + reason;
  } catch (const std::exception& error) {
    reason = custom_pypto::detail::reason_of(error);
  }
  const std::string text =
      "custom_pypto: results are allocated through torch's C interface, which is slower: "
      "OpPreparation::apply_tensor_without_format of this torch_npu is not as expected (" +
      reason + "). Unset " + kAllocationVariable;
  aoti_torch_warn("allocate", __FILE__, __LINE__, text.c_str());
  return nullptr;
}

// A contiguous tensor with the dtype and on the device of `like`, which is on an NPU. Null when
// there is no torch_npu that can; throws what torch_npu throws.
inline std::optional<Tensor> allocate(const Tensor& like, IntHeaderOnlyArrayRef sizes) {
  static const ApplyTensor apply_tensor = checked(find_apply_tensor(), like);
  if (apply_tensor == nullptr) return std::nullopt;
  return call(apply_tensor, like, sizes);
}

inline const bool is_used_by_empty = [] {
  custom_pypto::detail::allocate_on_npu = &allocate;
  return true;
}();

}  // namespace detail
}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
