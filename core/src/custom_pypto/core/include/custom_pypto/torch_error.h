// Errors of calls through libtorch's C interface.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/loaded_library.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>

#include <exception>
#include <stdexcept>
#include <string>

#if TORCH_FEATURE_VERSION < TORCH_VERSION_2_10_0
#error "custom_pypto needs -DTORCH_TARGET_VERSION of at least 2.10 (0x020a000000000000)"
#endif

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// The message of the last error of libtorch's C interface in this thread; for torch before 2.13,
// which only prints it, a hint where to find it.
inline const auto find_torch_reason = [] {
  const char* (*found)() = nullptr;
  find_in_torch("torch_exception_get_what_without_backtrace", found);
  return found;
}();

inline std::string torch_reason() {
  const char* text = find_torch_reason == nullptr ? nullptr : find_torch_reason();
  if (text == nullptr || *text == '\0') {
    return "torch failed (before 2.13 it prints the reason to standard error only)";
  }
  return text;
}

// The text of an exception of torch's C++, without its backtrace.
CUSTOM_PYPTO_COLD inline std::string reason_of(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find("\nException raised from "));
}

[[noreturn]] CUSTOM_PYPTO_COLD inline void throw_torch_error(const char* call) {
  throw std::runtime_error(std::string(call) + ": " + torch_reason());
}

// Throws std::runtime_error "<call>: <torch's reason>" when `code` says that `call` failed.
inline void expect_success(AOTITorchError code, const char* call) {
  if (CUSTOM_PYPTO_UNLIKELY(code != AOTI_TORCH_SUCCESS)) throw_torch_error(call);
}

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
