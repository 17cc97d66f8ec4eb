#pragma once

#include <cstdint>

namespace custom_pypto_simulator {

// What a device has, and a stream may use unless it is limited.
constexpr int64_t kCubeCores = 24;
constexpr int64_t kVectorCores = 48;

}  // namespace custom_pypto_simulator
