// The one device of a launch.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/placement.h>
#include <custom_pypto/torch_error.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// The device that the tensors of a launch are on.
class LaunchDevice {
 public:
  // Throws, with `title` first, when a tensor is not on an NPU, or on another one than those
  // before.
  void add(const std::string& title, std::size_t number, const Tensor& tensor) {
    const custom_pypto::detail::Placement place = custom_pypto::detail::placement_of(tensor);
    const bool is_npu = place.device_type == aoti_torch_device_type_privateuse1();
    if (CUSTOM_PYPTO_UNLIKELY(!is_npu || (index_ >= 0 && place.device_index != index_))) {
      fail(title.c_str(), nullptr, "argument ", number, " is on ", tensor.device(), ", not on ",
           is_npu ? "the NPU of the tensors before it" : "an NPU");
    }
    index_ = place.device_index;
  }

  // -1 when there are no tensors.
  int32_t index() const noexcept { return index_; }

 private:
  int32_t index_ = -1;
};

inline int32_t current_device() {
  int32_t index = 0;
  custom_pypto::detail::expect_success(aoti_torch_get_current_device_index(&index),
                                       "the current NPU");
  return index;
}

// Makes a device the current one, to the end of the scope. -1: leaves it as it is.
class DeviceScope {
 public:
  explicit DeviceScope(int32_t index) {
    if (index < 0 || index == current_device()) return;
    DeviceGuardHandle guard = nullptr;
    custom_pypto::detail::expect_success(aoti_torch_create_device_guard(index, &guard),
                                         "changing the current NPU");
    guard_.reset(guard);
  }

 private:
  using Leave = custom_pypto::detail::Deleter<aoti_torch_delete_device_guard>;
  std::unique_ptr<DeviceGuardOpaque, Leave> guard_;
};

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
