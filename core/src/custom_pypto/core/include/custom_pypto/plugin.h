// CUSTOM_PYPTO_PLUGIN: defines the library's entry points, through which core registers its ops:
//   CUSTOM_PYPTO_PLUGIN(plugin) {
//     plugin.def<ops::my_op>().impl<&my_op_cpu>("CPU");
//   }
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/loaded_library.h>
#include <custom_pypto/registrar.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// Copies what fits, never a part of a UTF-8 character.
inline void write_error(char* error, std::size_t size, std::string_view text) noexcept {
  if (error == nullptr || size == 0) return;
  std::size_t length = std::min(text.size(), size - 1);
  if (length < text.size()) {
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  }
  std::memcpy(error, text.data(), length);
  error[length] = '\0';
}

// The state behind the two entry points of a plugin's library.
class Registration {
 public:
  constexpr Registration() = default;

  int enter(void (*body)(Registrar&), char* error, std::size_t size) noexcept {
    try {
      if (registrar_ != nullptr) throw RegistrationError("the plugin's ops are registered already");
      const std::string path = library_path(reinterpret_cast<const void*>(body));
      auto registrar = std::make_unique<Registrar>(path.empty() ? "a custom_pypto plugin" : path);
      body(*registrar);
      // Never destroyed at exit: other threads may still call the ops then.
      registrar_ = registrar.release();
      return 0;
    } catch (const std::exception& exception) {
      write_error(error, size, exception.what());
    } catch (...) {
      write_error(error, size, "registration threw something that is no std::exception");
    }
    return 1;
  }

  void leave() noexcept {
    const std::unique_ptr<Registrar> dropped(registrar_);
    registrar_ = nullptr;
  }

 private:
  Registrar* registrar_ = nullptr;
};

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END

// Begins the function that registers a plugin's ops on the Registrar `plugin`; exactly one per
// library. When it throws, everything is unregistered and core shows the exception's text.
#define CUSTOM_PYPTO_PLUGIN(plugin)                                                                \
  static void custom_pypto_plugin_body(::custom_pypto::Registrar&);                                \
  static ::custom_pypto::detail::Registration custom_pypto_plugin_state;                           \
  CUSTOM_PYPTO_EXPORT int custom_pypto_register_v1(char* error, std::size_t error_size) {          \
    return custom_pypto_plugin_state.enter(&custom_pypto_plugin_body, error, error_size);          \
  }                                                                                                \
  CUSTOM_PYPTO_EXPORT void custom_pypto_unregister_v1(void) { custom_pypto_plugin_state.leave(); } \
  static void custom_pypto_plugin_body(::custom_pypto::Registrar& plugin)
