// Looks up functions of libtorch by name, for those that torch 2.10, which plugins target, does not
// have or its C interface does not expose.
#pragma once

#include <custom_pypto/abi.h>
#include <dlfcn.h>
#include <torch/csrc/stable/c/shim.h>

#include <memory>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// Null when there is none. Through the library of torch_call_dispatcher, because libtorch is not in
// the global scope.
inline void* find_in_torch(const char* name) noexcept {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&torch_call_dispatcher), &info) == 0) return nullptr;
  struct Close {
    void operator()(void* handle) const noexcept { dlclose(handle); }
  };
  const std::unique_ptr<void, Close> library(dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD));
  return library == nullptr ? nullptr : dlsym(library.get(), name);
}

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
