// The number of cores that kernels may use.
#pragma once

#include <cstdint>

namespace custom_pypto_simulator {

// The cores of a device, and the default limit of a stream.
constexpr int64_t kCubeCores = 24;
constexpr int64_t kVectorCores = 48;

}  // namespace custom_pypto_simulator
