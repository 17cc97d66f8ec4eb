// Looks up functions in libraries that this process has loaded: of torch_npu and CANN, which
// plugins are not linked to, and of libtorch, those that torch 2.10 or its C interface does not
// have.
#pragma once

#include <custom_pypto/abi.h>
#include <dlfcn.h>
#include <torch/csrc/stable/c/shim.h>

#include <memory>
#include <string>

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

// By path, because libtorch is not in the global scope.
template <typename Function>
void find_in_torch(const char* name, Function& function) {
  const auto* address = reinterpret_cast<const void*>(&torch_call_dispatcher);
  find_loaded(library_path(address).c_str(), name, function);
}

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
