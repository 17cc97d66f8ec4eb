// Registration of ops and kernels that can be undone.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/boxing.h>
#include <custom_pypto/op_arguments.h>
#include <custom_pypto/schema.h>
#include <custom_pypto/signature.h>
#include <custom_pypto/torch_error.h>
#include <torch/csrc/stable/c/shim.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// What CUSTOM_PYPTO_SCHEMA makes. Nothing else makes one, because the build reads an op's schema
// from where the macro puts it.
class SchemaText {
 public:
  explicit constexpr SchemaText(const char* text) : text_(text) {}
  constexpr const char* text() const { return text_; }

 private:
  const char* text_;
};

namespace detail {

struct DeleteLibrary {
  void operator()(TorchLibraryOpaque* library) const noexcept {
    aoti_torch_delete_library_object(library);
  }
};
// Deleting it deregisters what was registered through it.
using TorchLibrary = std::unique_ptr<TorchLibraryOpaque, DeleteLibrary>;

// Dispatch keys whose kernels write to memory themselves. The others (autograd, functionalization,
// composites of ops that bump for themselves) only call further ops.
inline bool runs_the_write(std::string_view key) {
  const auto starts_with = [&](std::string_view prefix) {
    return key.substr(0, prefix.size()) == prefix;
  };
  return !(starts_with("Autograd") || starts_with("Autocast") || starts_with("FuncTorch") ||
           starts_with("CompositeImplicitAutograd") || key == "Functionalize" ||
           key == "ADInplaceOrView" || key == "Meta" || key == "BackendSelect");
}

}  // namespace detail

class OpRegistrar;

// Owns what a plugin registered: destroying it drops every kernel and schema again.
class Registrar {
 public:
  // `origin` is shown in torch's messages about duplicate ops.
  explicit Registrar(std::string origin) : origin_(std::move(origin)) {}
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;
  ~Registrar() {
    kernels_.clear();
    schemas_.reset();
    for (const OpArguments** slot : slots_) *slot = nullptr;
  }

  // Defines an op in the namespace custom_pypto. Throws RegistrationError when the text is no
  // schema, when a return aliases an argument, or when torch refuses it (the op exists already).
  OpRegistrar def(SchemaText schema);

 private:
  friend class OpRegistrar;
  using OpArguments = detail::OpArguments;

  struct Op {
    Schema schema;
    OpArguments arguments;
    std::vector<std::string> keys;
  };
  struct Kernels {
    std::string key;
    detail::TorchLibrary library;
  };

  TorchLibraryHandle schemas() {
    if (schemas_ == nullptr) {
      TorchLibraryHandle library = nullptr;
      detail::expect_success(
          aoti_torch_library_init_fragment("custom_pypto", origin_.c_str(), 0, &library),
          "the namespace custom_pypto");
      schemas_.reset(library);
    }
    return schemas_.get();
  }

  TorchLibraryHandle kernels(const std::string& op, const std::string& key) {
    for (const Kernels& each : kernels_) {
      if (each.key == key) return each.library.get();
    }
    TorchLibraryHandle library = nullptr;
    if (aoti_torch_library_init_impl("custom_pypto", key.c_str(), origin_.c_str(), 0, &library) !=
        AOTI_TORCH_SUCCESS) {
      throw RegistrationError(op + ": torch has no dispatch key `" + key +
                              "` for kernels: " + detail::torch_reason());
    }
    kernels_.push_back({key, detail::TorchLibrary(library)});
    return library;
  }

  std::string origin_;
  detail::TorchLibrary schemas_;
  std::vector<Kernels> kernels_;
  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<const OpArguments**> slots_;
};

// An op that was defined, to be given kernels.
class OpRegistrar {
 public:
  // Registers `kernel` for a dispatch key such as "CPU" or "PrivateUse1". Every argument that the
  // schema marks as written to (`Tensor(a!)`) has its version counter bumped before the kernel
  // runs. None for a `Tensor` or within a `Tensor[]` is an error that names the argument. Throws
  // RegistrationError when the kernel's C++ type does not fit the schema, when the op has a kernel
  // for the key already, when the kernel is another op's, or when torch refuses it.
  template <auto kernel>
  OpRegistrar& impl(const std::string& key) {
    using Traits = detail::FunctionTraits<decltype(kernel)>;
    detail::compare(op_.schema, Traits::signature(), key);
    bind(key, detail::OpOf<kernel>::arguments);
    if (op_.arguments.mutable_arguments != 0 && detail::runs_the_write(key)) {
      add(key, detail::boxed_kernel<kernel, true>);
    } else {
      add(key, detail::boxed_kernel<kernel, false>);
    }
    return *this;
  }

 private:
  friend class Registrar;
  OpRegistrar(Registrar& registrar, Registrar::Op& op) : registrar_(registrar), op_(op) {}

  void bind(const std::string& key, const detail::OpArguments*& slot) {
    if (slot == &op_.arguments) return;
    if (slot != nullptr) {
      throw RegistrationError(op_.arguments.op + ": the " + key + " kernel is a kernel of `" +
                              slot->op + "` too; give each op a function of its own, by which " +
                              "errors name the op and its arguments");
    }
    slot = &op_.arguments;
    registrar_.slots_.push_back(&slot);
  }

  void add(const std::string& key, detail::BoxedKernel kernel) {
    if (std::find(op_.keys.begin(), op_.keys.end(), key) != op_.keys.end()) {
      throw RegistrationError(op_.arguments.op + ": two " + key + " kernels are registered");
    }
    if (torch_library_impl(registrar_.kernels(op_.arguments.op, key), op_.arguments.op.c_str(),
                           kernel, TORCH_ABI_VERSION) != AOTI_TORCH_SUCCESS) {
      throw RegistrationError(op_.arguments.op + ": torch refused the " + key +
                              " kernel: " + detail::torch_reason());
    }
    op_.keys.push_back(key);
  }

  Registrar& registrar_;
  Registrar::Op& op_;
};

inline OpRegistrar Registrar::def(SchemaText schema) {
  auto op = std::make_unique<Op>();
  op->schema = parse_schema(schema.text());
  op->arguments.op = op->schema.full_name();
  const auto& arguments = op->schema.arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].has_default && arguments[i].type.name == "Tensor") {
      throw RegistrationError(
          op->arguments.op + ": argument `" + arguments[i].name +
          "` is a Tensor with a default, which can only be None; write `Tensor? " +
          arguments[i].name + "=None`");
    }
    op->arguments.names.push_back(arguments[i].name);
    if (arguments[i].type.is_mutable() && i < 64)
      op->arguments.mutable_arguments |= uint64_t{1} << i;
  }
  for (const SchemaReturn& each : op->schema.returns) {
    if (!each.type.alias.empty()) {
      throw RegistrationError(op->arguments.op + ": a return is annotated `(" + each.type.alias +
                              ")`, but torch.compile cannot take an op that returns an alias of an "
                              "argument; return `()` and let the caller use the argument");
    }
  }
  if (aoti_torch_library_def(schemas(), schema.text()) != AOTI_TORCH_SUCCESS) {
    throw RegistrationError(op->arguments.op + ": torch refused the schema `" + schema.text() +
                            "`: " + detail::torch_reason());
  }
  ops_.push_back(std::move(op));
  return OpRegistrar(*this, *ops_.back());
}

CUSTOM_PYPTO_NAMESPACE_END
