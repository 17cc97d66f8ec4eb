// CUSTOM_PYPTO_PLUGIN: defines the library's entry points, through which core registers its ops:
//   CUSTOM_PYPTO_PLUGIN(plugin) {
//     plugin.def<ops::my_op>().impl<&my_op_cpu>("CPU");
//   }
// `plugin` is a Registrar: it unregisters what it registered when it is destroyed.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/boxing.h>
#include <custom_pypto/c_interface.h>
#include <torch/csrc/stable/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

namespace detail {

// Deleting it deregisters what was registered through it.
using TorchLibrary = std::unique_ptr<TorchLibraryOpaque, Deleter<aoti_torch_delete_library_object>>;

// Whether kernels of a dispatch key read and write memory themselves. The others (autograd,
// functionalization, composites) only call ops, which check tensors and bump version counters
// themselves. custom_pypto_contract/dispatch_keys.py has those that plugins use.
inline bool is_backend_key(std::string_view key) {
  const auto starts_with = [&](std::string_view prefix) {
    return key.substr(0, prefix.size()) == prefix;
  };
  return !(starts_with("Autograd") || starts_with("Autocast") || starts_with("FuncTorch") ||
           starts_with("CompositeImplicitAutograd") || key == "Functionalize" ||
           key == "ADInplaceOrView" || key == "Meta" || key == "BackendSelect");
}

}  // namespace detail

// Registration failed; the text is shown to the user.
class RegistrationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class Op>
class OpRegistrar;

// Owns what a plugin registered: destroying it unregisters every kernel and schema.
class Registrar {
 public:
  // `origin` is shown in torch's messages about duplicate ops.
  explicit Registrar(std::string origin) : origin_(std::move(origin)) {}
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;
  ~Registrar() {
    kernels_.clear();
    schemas_.reset();
  }

  // Defines the op whose struct in ops.h is `Op`, in the namespace custom_pypto. Throws
  // RegistrationError when torch refuses it (the op exists already).
  template <class Op>
  OpRegistrar<Op> def();

 private:
  template <class Op>
  friend class OpRegistrar;

  struct Kernels {
    std::string key;
    detail::TorchLibrary library;
  };

  CUSTOM_PYPTO_COLD void define(const char* op, const char* schema) {
    if (schemas_ == nullptr) {
      TorchLibraryHandle library = nullptr;
      detail::expect_success(
          aoti_torch_library_init_fragment("custom_pypto", origin_.c_str(), 0, &library),
          "the namespace custom_pypto");
      schemas_.reset(library);
    }
    if (aoti_torch_library_def(schemas_.get(), schema) != AOTI_TORCH_SUCCESS) {
      throw RegistrationError(std::string(op) + ": torch refused the schema `" + schema +
                              "`: " + detail::torch_reason());
    }
  }

  CUSTOM_PYPTO_COLD void add(const char* op, const std::string& key, detail::BoxedKernel kernel) {
    if (torch_library_impl(kernels(op, key), op, kernel, TORCH_ABI_VERSION) != AOTI_TORCH_SUCCESS) {
      throw RegistrationError(std::string(op) + ": torch refused the " + key +
                              " kernel: " + detail::torch_reason());
    }
  }

  CUSTOM_PYPTO_COLD TorchLibraryHandle kernels(const char* op, const std::string& key) {
    for (const Kernels& each : kernels_) {
      if (each.key == key) return each.library.get();
    }
    TorchLibraryHandle library = nullptr;
    if (aoti_torch_library_init_impl("custom_pypto", key.c_str(), origin_.c_str(), 0, &library) !=
        AOTI_TORCH_SUCCESS) {
      throw RegistrationError(std::string(op) + ": torch has no dispatch key `" + key +
                              "` for kernels: " + detail::torch_reason());
    }
    kernels_.push_back({key, detail::TorchLibrary(library)});
    return library;
  }

  std::string origin_;
  detail::TorchLibrary schemas_;
  std::vector<Kernels> kernels_;
};

// Registers the kernels of an op that was defined.
template <class Op>
class OpRegistrar {
 public:
  // Registers `kernel` for a dispatch key such as "CPU" or "PrivateUse1". It is called with checked
  // arguments, and fills or makes the outputs:
  //   void kernel(const Op::Arguments&, const Op::CallShape&, const Op::Outputs&)  fills them
  //   Op::Outputs kernel(const Op::Arguments&, const Op::CallShape&)               makes them
  // Tensors without memory are refused before, and what must not be written in place; the version
  // counter of every argument that the schema marks as written to (`Tensor(a!)`) is bumped. Throws
  // RegistrationError when the op has a kernel for the key already, or when torch refuses it.
  template <auto kernel>
  OpRegistrar& impl(const std::string& key) {
    if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) {
      throw RegistrationError(std::string(Op::name) + ": two " + key + " kernels are registered");
    }
    constexpr auto run = &Op::template run<kernel>;
    if (detail::is_backend_key(key)) {
      registrar_.add(Op::name, key, detail::boxed_kernel<Op, run, true>);
    } else {
      registrar_.add(Op::name, key, detail::boxed_kernel<Op, run, false>);
    }
    keys_.push_back(key);
    return *this;
  }

 private:
  friend class Registrar;
  explicit OpRegistrar(Registrar& registrar) : registrar_(registrar) {}

  Registrar& registrar_;
  std::vector<std::string> keys_;
};

template <class Op>
OpRegistrar<Op> Registrar::def() {
  // Core has defined an op that draws random numbers, with torch's tag for it.
  if (!Op::is_random) define(Op::name, Op::schema);
  return OpRegistrar<Op>(*this);
}

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
  CUSTOM_PYPTO_RECORD_ABI                                                                          \
  static void custom_pypto_plugin_body(::custom_pypto::Registrar&);                                \
  static ::custom_pypto::detail::Registration custom_pypto_plugin_state;                           \
  CUSTOM_PYPTO_EXPORT int custom_pypto_register_v1(char* error, std::size_t error_size) {          \
    return custom_pypto_plugin_state.enter(&custom_pypto_plugin_body, error, error_size);          \
  }                                                                                                \
  CUSTOM_PYPTO_EXPORT void custom_pypto_unregister_v1(void) { custom_pypto_plugin_state.leave(); } \
  static void custom_pypto_plugin_body(::custom_pypto::Registrar& plugin)
