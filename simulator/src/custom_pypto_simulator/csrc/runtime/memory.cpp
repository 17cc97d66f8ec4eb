// Device and host memory: allocation, poison and guard bytes.
#include "memory.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "custom_pypto_simulator/runtime.h"
#include "device.h"
#include "setting.h"

namespace custom_pypto_simulator {
namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kGuardBytes = 512;
constexpr int kGuard = 0x5A;
constexpr int kPoison = 0xA5;
// The quarantine: freed memory stays poisoned for a while, so that a use after free reads poison.
constexpr size_t kQuarantineBytes = 64 << 20;

std::atomic<int64_t>& count_of(Place place) {
  static std::atomic<int64_t>& device = *custom_pypto_sim_counter("device memory");
  static std::atomic<int64_t>& host = *custom_pypto_sim_counter("host memory");
  return place == Place::device ? device : host;
}

class Memory {
 public:
  int allocate(const char* function, void** data, size_t bytes, Place place) {
    if (data == nullptr || bytes == 0) {
      return fail(ACL_ERROR_INVALID_PARAM, function, ": needs an address and at least one byte");
    }
    if (custom_pypto_sim_function_fault(function)) return ACL_ERROR_RT_MEMORY_ALLOCATION;
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    const int32_t device = current_device();
    if (place == Place::device) {
      if (const int code = refuse_if_lost(function, device)) return code;
      if (used_[device] + bytes > settings().memory) {
        return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, function, ": device ", device,
                    " is out of memory: ", bytes, " bytes requested, ", used_[device], " of ",
                    settings().memory, " in use (CUSTOM_PYPTO_SIM_MEMORY)");
      }
    }
    void* block = nullptr;
    if (posix_memalign(&block, kAlignment, bytes + 2 * kGuardBytes) != 0) {
      return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, function, ": the host has no ", bytes, " bytes");
    }
    char* begin = static_cast<char*>(block) + kGuardBytes;
    std::memset(block, kGuard, kGuardBytes);
    std::memset(begin + bytes, kGuard, kGuardBytes);
    if (settings().poison) std::memset(begin, kPoison, bytes);
    const auto address = reinterpret_cast<uintptr_t>(begin);
    live_[address] = {address, bytes, place, device};
    if (place == Place::device) used_[device] += bytes;
    ++count_of(place);
    *data = begin;
    return ACL_SUCCESS;
  }

  int release(const char* function, void* data, Place place) {
    if (data == nullptr) return ACL_SUCCESS;
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto found = live_.find(reinterpret_cast<uintptr_t>(data));
    if (found == live_.end() || found->second.place != place) {
      return fail(ACL_ERROR_INVALID_PARAM, function, ": ", data,
                  " was not allocated, or was freed");
    }
    const Allocation allocation = found->second;
    live_.erase(found);
    if (place == Place::device) used_[allocation.device] -= allocation.bytes;
    --count_of(place);
    discard(allocation);
    return ACL_SUCCESS;
  }

  std::optional<Allocation> find(const void* data, size_t bytes) {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto address = reinterpret_cast<uintptr_t>(data);
    const auto next = live_.upper_bound(address);
    if (next == live_.begin()) return std::nullopt;
    const Allocation& found = std::prev(next)->second;
    if (address + bytes > found.begin + found.bytes) return std::nullopt;
    return found;
  }

  size_t used(int32_t device) {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = used_.find(device);
    return found == used_.end() ? 0 : found->second;
  }

  std::string damage() {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    std::string text;
    for (const auto& [begin, allocation] : live_) text += damage_of(allocation);
    return text;
  }

 private:
  static char* block_of(const Allocation& allocation) {
    return reinterpret_cast<char*>(allocation.begin) - kGuardBytes;
  }

  void discard(const Allocation& allocation) {
    if (!settings().poison) {
      std::free(block_of(allocation));
      return;
    }
    std::memset(block_of(allocation), kPoison, allocation.bytes + 2 * kGuardBytes);
    quarantine_.push_back(allocation);
    quarantined_ += allocation.bytes;
    while (quarantined_ > kQuarantineBytes && quarantine_.size() > 1) {
      quarantined_ -= quarantine_.front().bytes;
      std::free(block_of(quarantine_.front()));
      quarantine_.pop_front();
    }
  }

  static std::string damage_of(const Allocation& allocation) {
    const auto* begin = reinterpret_cast<const unsigned char*>(allocation.begin);
    for (size_t i = 0; i < kGuardBytes; ++i) {
      const bool before = begin[-1 - static_cast<ptrdiff_t>(i)] != kGuard;
      if (!before && begin[allocation.bytes + i] == kGuard) continue;
      std::ostringstream text;
      text << "something wrote byte " << i << (before ? " before" : " after") << " the "
           << allocation.bytes << " bytes at " << static_cast<const void*>(begin) << "\n";
      return text.str();
    }
    return "";
  }

  std::shared_mutex mutex_;
  std::map<uintptr_t, Allocation> live_;
  std::map<int32_t, size_t> used_;
  std::deque<Allocation> quarantine_;
  size_t quarantined_ = 0;
};

Memory& memory() {
  static auto* instance = new Memory;  // stream threads may outlive static destructors
  return *instance;
}

}  // namespace

std::optional<Allocation> allocation_of(const void* data, size_t bytes) {
  return memory().find(data, bytes);
}

size_t used_memory(int32_t device) { return memory().used(device); }

}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;
using sim::Place;

CUSTOM_PYPTO_SIM_EXPORT bool custom_pypto_sim_on_device(const void* data, size_t bytes) {
  const auto allocation = sim::allocation_of(data, bytes);
  return allocation && allocation->place == Place::device &&
         allocation->device == sim::current_device();
}

// Writes outside live allocations, a line each; "" when there were none.
CUSTOM_PYPTO_SIM_EXPORT const char* custom_pypto_sim_damage() {
  static thread_local std::string text;
  text = sim::memory().damage();
  return text.c_str();
}

aclError aclrtMalloc(void** data, size_t bytes, aclrtMemMallocPolicy) {
  return sim::memory().allocate("aclrtMalloc", data, bytes, Place::device);
}

aclError aclrtFree(void* data) { return sim::memory().release("aclrtFree", data, Place::device); }

aclError aclrtMallocHost(void** data, size_t bytes) {
  return sim::memory().allocate("aclrtMallocHost", data, bytes, Place::host);
}

aclError aclrtMallocHostWithCfg(void** data, uint64_t bytes, aclrtMallocConfig*) {
  return sim::memory().allocate("aclrtMallocHostWithCfg", data, bytes, Place::host);
}

aclError aclrtFreeHost(void* data) {
  return sim::memory().release("aclrtFreeHost", data, Place::host);
}

aclError aclrtPointerGetAttributes(const void* data, aclrtPtrAttributes* attributes) {
  const auto allocation = sim::allocation_of(data);
  *attributes = {};
  if (!allocation) {
    attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    return ACL_SUCCESS;
  }
  const bool device = allocation->place == Place::device;
  attributes->location.type = device ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
  attributes->location.id = static_cast<uint32_t>(allocation->device);
  return ACL_SUCCESS;
}
