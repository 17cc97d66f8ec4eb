// The live allocations of devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace custom_pypto_simulator {

enum class Place { device, host };

struct Allocation {
  uintptr_t begin;
  size_t bytes;
  Place place;
  int32_t device;
};

// The live allocation that holds [data, data + bytes).
std::optional<Allocation> allocation_of(const void* data, size_t bytes = 1);

size_t used_memory(int32_t device);

}  // namespace custom_pypto_simulator
