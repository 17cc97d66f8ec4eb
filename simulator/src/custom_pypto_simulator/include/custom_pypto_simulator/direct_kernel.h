// In a simulated kernel `kernel<<<blocks, l2ctrl, stream>>>(arguments...)` becomes
// `Direct(kernel, "kernel", blocks, l2ctrl, stream)(arguments...)`.
#pragma once

#include <custom_pypto_simulator/runtime.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>

namespace custom_pypto_simulator {

// The core that this thread runs now, and the number of cores.
struct Core {
  int64_t index;
  int64_t count;
};

inline Core& running_core() {
  static thread_local Core core{0, 1};
  return core;
}

inline void check_on_device(const void* data, std::size_t bytes) {
  if (custom_pypto_sim_on_device(data, bytes)) return;
  throw std::runtime_error("its memory is not allocated on the device of the stream");
}

template <typename... P>
class Direct {
 public:
  Direct(void (*kernel)(P...), const char* name, uint32_t blocks, void*, void* stream)
      : kernel_(kernel), name_(name), blocks_(blocks), stream_(stream) {}

  // Throws std::runtime_error, in phase with the host: a launch has no status.
  void operator()(P... arguments) const {
    auto launch = std::make_unique<Launch>(Launch{kernel_, name_, blocks_, {arguments...}});
    const int code = custom_pypto_sim_enqueue(stream_, name_, &run, launch.release(), &destroy);
    if (code != 0) {
      throw std::runtime_error(std::string(name_) + ": code " + std::to_string(code));
    }
  }

 private:
  struct Launch {
    void (*kernel)(P...);
    const char* name;
    uint32_t blocks;
    std::tuple<P...> arguments;
  };

  static int run(void* state) {
    const Launch& launch = *static_cast<const Launch*>(state);
    if (custom_pypto_sim_fault(kExecution, launch.name)) return kFailed;
    custom_pypto_sim_delay(launch.name);
    try {
      for (int64_t index = launch.blocks; index-- > 0;) {
        running_core() = {index, launch.blocks};
        std::apply(launch.kernel, launch.arguments);
      }
      return 0;
    } catch (const std::exception& error) {
      return custom_pypto_sim_error(kFailed,
                                    (std::string(launch.name) + ": " + error.what()).c_str());
    }
  }
  static void destroy(void* state) { delete static_cast<Launch*>(state); }

  // CANN's code for an exception of an AI core.
  static constexpr int kFailed = 507015;

  void (*kernel_)(P...);
  const char* name_;
  uint32_t blocks_;
  void* stream_;
};

}  // namespace custom_pypto_simulator
