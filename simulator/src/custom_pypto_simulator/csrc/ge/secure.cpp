// The four functions of CANN's secure C library that torchair imports.
#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

#define CUSTOM_PYPTO_SIM_SECURE extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kRange = 34;

}  // namespace

CUSTOM_PYPTO_SIM_SECURE int vsnprintf_s(char* to, size_t room, size_t count, const char* format,
                                        va_list arguments) {
  return std::vsnprintf(to, std::min(room, count + 1), format, arguments);
}

CUSTOM_PYPTO_SIM_SECURE int snprintf_s(char* to, size_t room, size_t count, const char* format,
                                       ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = vsnprintf_s(to, room, count, format, arguments);
  va_end(arguments);
  return written;
}

CUSTOM_PYPTO_SIM_SECURE int strcpy_s(char* to, size_t room, const char* from) {
  if (std::strlen(from) + 1 > room) return kRange;
  std::strcpy(to, from);
  return 0;
}

CUSTOM_PYPTO_SIM_SECURE int memcpy_s(void* to, size_t room, const void* from, size_t count) {
  if (count > room) return kRange;
  std::memcpy(to, from, count);
  return 0;
}
