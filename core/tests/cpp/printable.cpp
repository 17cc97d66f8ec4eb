// printable() of a text, for Python.
#include <custom_pypto/printable.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

// Writes the result to `out`; returns its size, which may be above `capacity`.
extern "C" std::size_t printable(const char* text, std::size_t size, char* out,
                                 std::size_t capacity) {
  const std::string result = custom_pypto::printable(std::string_view(text, size));
  result.copy(out, std::min(result.size(), capacity));
  return result.size();
}
