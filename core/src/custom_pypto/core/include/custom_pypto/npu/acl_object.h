// Ownership of CANN's objects.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/cann.h>

#include <utility>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// Owns one of CANN's objects, or none.
class AclObject {
 public:
  AclObject() = default;
  AclObject(void* object, AclDestroy destroy) noexcept : object_(object), destroy_(destroy) {}
  AclObject(AclObject&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), destroy_(other.destroy_) {}
  AclObject& operator=(AclObject&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ~AclObject() {
    if (object_ != nullptr && destroy_ != nullptr) destroy_(object_);
  }

  void* get() const noexcept { return object_; }
  void* release() noexcept { return std::exchange(object_, nullptr); }

 private:
  void* object_ = nullptr;
  AclDestroy destroy_ = nullptr;
};

// The thread's arena for the allocations of phase 1, to the end of the scope. There CANN only
// forgets the arena: whoever runs phase 2 frees its memory.
class HugeMemory {
 public:
  HugeMemory() {
    if (cann().init_huge_memory != nullptr) cann().init_huge_memory(nullptr, false);
  }
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;
  ~HugeMemory() {
    if (!is_handed_over_) release();
    if (cann().uninit_huge_memory != nullptr) cann().uninit_huge_memory(nullptr, false);
  }

  // Phase 2 frees it from now on.
  void hand_over() noexcept { is_handed_over_ = true; }

  // Frees the memory of the thread's last phase 2 or last destroyed executor.
  static void release() noexcept {
    if (cann().release_huge_memory != nullptr) cann().release_huge_memory(nullptr, false);
  }

 private:
  bool is_handed_over_ = false;
};

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
