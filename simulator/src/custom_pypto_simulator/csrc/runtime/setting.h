// The environment variables CUSTOM_PYPTO_SIM_*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace custom_pypto_simulator {

struct Settings {
  int32_t devices;      // CUSTOM_PYPTO_SIM_DEVICES, default 1
  size_t memory;        // CUSTOM_PYPTO_SIM_MEMORY, bytes of each device, default 4 GiB
  std::string soc;      // CUSTOM_PYPTO_SIM_SOC, default Ascend910B1
  bool poison;          // CUSTOM_PYPTO_SIM_POISON=1: fill memory when allocated and when freed
  bool executor_cache;  // CUSTOM_PYPTO_SIM_EXECUTOR_CACHE=0: none, default 1
};

// Read at first use.
const Settings& settings();

// CUSTOM_PYPTO_SIM_CANN, default 8.5.0. Read anew each time: torch_npu asks while it is imported,
// plugins when they are first used.
std::string cann();

}  // namespace custom_pypto_simulator
