// In a simulated kernel `kernel<<<blocks, l2ctrl, stream>>>(arguments...)` becomes
// `Direct(kernel, "kernel", blocks, l2ctrl, stream)(arguments...)`.
#pragma once

#include <custom_pypto_simulator/runtime.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

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
    const auto task = [launch = *this, arguments...] { return launch.run(arguments...); };
    const int code = enqueue(stream_, name_, task);
    if (code != 0) {
      throw std::runtime_error(std::string(name_) + ": code " + std::to_string(code));
    }
  }

 private:
  int run(P... arguments) const {
    if (custom_pypto_sim_function_fault((std::string("run:") + name_).c_str())) return kOpFailed;
    custom_pypto_sim_delay(name_);
    try {
      for (int64_t index = blocks_; index-- > 0;) {
        running_core() = {index, blocks_};
        kernel_(arguments...);
      }
      return 0;
    } catch (const std::exception& error) {
      return fail(kOpFailed, name_, ": ", error.what());
    }
  }

  void (*kernel_)(P...);
  const char* name_;
  uint32_t blocks_;
  void* stream_;
};

}  // namespace custom_pypto_simulator
