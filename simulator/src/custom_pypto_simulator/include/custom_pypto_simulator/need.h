// Refusals of simulated kernels, and a number that CANN's kernels of attention share.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace custom_pypto_simulator {

// Throws unless the condition holds: the op fails with `what`.
inline void need(bool condition, const std::string& what) {
  if (!condition) throw std::invalid_argument(what);
}

// pre_tokens and next_tokens of a window that holds every token.
constexpr int64_t kAllTokens = std::numeric_limits<int64_t>::max();

}  // namespace custom_pypto_simulator
