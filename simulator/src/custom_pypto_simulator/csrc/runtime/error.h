// The recent error of each thread.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {

struct Error {
  int code;
  std::string text;
};

inline thread_local std::optional<Error> recent_error;

// Returns and clears the calling thread's recent error.
inline std::optional<Error> take_recent() { return std::exchange(recent_error, std::nullopt); }

}  // namespace custom_pypto_simulator
