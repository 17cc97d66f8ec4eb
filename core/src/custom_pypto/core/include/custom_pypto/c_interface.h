// Functions of C interfaces: ownership of what they make, errors of libtorch's, and functions found
// in libraries that this process has loaded: of torch_npu and CANN, which plugins are not linked
// to, and of libtorch, what torch 2.10 or its C interface does not have.
#pragma once

#include <custom_pypto/abi.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#if TORCH_FEATURE_VERSION < TORCH_VERSION_2_10_0
#error "custom_pypto needs -DTORCH_TARGET_VERSION of at least 2.10 (0x020a000000000000)"
#endif

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// For std::unique_ptr: frees by calling a C function.
template <auto function>
struct Deleter {
  template <typename T>
  void operator()(T* owned) const noexcept {
    function(owned);
  }
};

// The path of the library that contains `address`; "" when it is not known.
inline std::string library_path(const void* address) {
  Dl_info info{};
  const bool found = dladdr(address, &info) != 0 && info.dli_fname != nullptr;
  return found ? info.dli_fname : "";
}

// Sets `function` to null when the library is not loaded, or has no such function.
template <typename Function>
void find_loaded(const char* library, const char* name, Function& function) noexcept {
  const std::unique_ptr<void, Deleter<dlclose>> handle(dlopen(library, RTLD_LAZY | RTLD_NOLOAD));
  function = handle == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(handle.get(), name));
}

// In the library that plugins are linked to: it is not in the global scope. Its path by dladdr
// would take a millisecond, for its many symbols.
template <typename Function>
void find_in_torch(const char* name, Function& function) {
  find_loaded("libtorch_cpu.so", name, function);
}

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
