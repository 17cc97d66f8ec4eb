// The recent error of each thread.
#pragma once

#include <optional>
#include <string>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {

struct Error {
  int code;
  std::string text;
};

// Returns and clears the calling thread's recent error.
std::optional<Error> take_recent();

}  // namespace custom_pypto_simulator
