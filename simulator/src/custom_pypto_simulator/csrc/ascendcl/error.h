// The recent error of each thread, and the functions that set it.
#pragma once

#include <optional>
#include <sstream>
#include <string>

namespace custom_pypto_simulator {

struct Error {
  int code;
  std::string text;
};

// Sets the calling thread's recent error.
void remember(int code, const std::string& text);

// Returns and clears the calling thread's recent error.
std::optional<Error> take_recent();

template <class... Parts>
int fail(int code, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  remember(code, text.str());
  return code;
}

}  // namespace custom_pypto_simulator
