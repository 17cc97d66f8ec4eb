// Refusals of simulated kernels, and a number that CANN's kernels of attention share.
#pragma once

#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace custom_pypto_simulator {

// Refuses: throws std::invalid_argument with the text of `parts`.
template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

// Refuses unless the condition holds: the op fails with the text of `parts`.
template <class... Parts>
void need(bool condition, const Parts&... parts) {
  if (!condition) refuse(parts...);
}

// pre_tokens and next_tokens of a window that holds every token.
constexpr int64_t kAllTokens = std::numeric_limits<int64_t>::max();

}  // namespace custom_pypto_simulator
