// A way past the derivative's Python kernel for calls that need no gradient.
//
// torch.library.register_autograd registers a Python function for every autograd key. It asks
// whether a gradient is needed, which takes longer than a small op: 3 us. The gate asks the same
// before Python is entered. It is the kernel of one such key (AutogradCPU, ...), and calls the op
// once more: where no gradient is needed with all autograd keys excluded, else with this key
// excluded and AutogradOther included, which is where it meets the Python kernel.
//
// The stable ABI cannot exclude keys. The functions that do are looked up by name, with the plain
// types that they have in torch's binaries; where one is missing there is no gate, and every call
// goes through Python.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/signature.h>
#include <custom_pypto/torch_error.h>
#include <custom_pypto/torch_symbol.h>
#include <custom_pypto/value.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// libc10's c10::impl::ExcludeDispatchKeyGuard, IncludeDispatchKeyGuard and what they take.
class DispatchKeys {
 public:
  // Null where libtorch is not known to have them, or cannot say why an op failed: torch before
  // 2.13.
  static const DispatchKeys* find() {
    static const std::optional<DispatchKeys> found = look_up();
    return found.has_value() ? &*found : nullptr;
  }

  bool requires_grad(AtenTensorHandle tensor) const {
    // An at::Tensor is a pointer to its TensorImpl.
    return requires_grad_(*reinterpret_cast<const void* const*>(tensor));
  }

  // In this thread, while it lives: `needed`: the Python kernel comes next; else: no autograd.
  class Scope {
   public:
    Scope(const DispatchKeys& keys, bool needed) : keys_(keys), included_(needed) {
      keys_.exclude_(exclusion_, needed ? keys_.autograd_of_backends_ : keys_.autograd_);
      if (included_) keys_.include_(inclusion_, keys_.autograd_of_others_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      if (included_) keys_.end_include_(inclusion_);
      keys_.end_exclude_(exclusion_);
    }

   private:
    const DispatchKeys& keys_;
    const bool included_;
    // The guards: a pointer and a key set each, with room to spare.
    alignas(16) unsigned char exclusion_[64];
    alignas(16) unsigned char inclusion_[64];
  };

 private:
  using Keys = uint64_t;
  using Begin = void (*)(void* guard, Keys keys);
  using End = void (*)(void* guard);

  static std::optional<DispatchKeys> look_up() {
    DispatchKeys found;
    uint16_t (*parse)(const std::string&) = nullptr;
    Keys (*keys_of)(uint16_t) = nullptr;
    const bool complete =
        find_in_torch("torch_exception_get_what_without_backtrace") != nullptr &&
        get("_ZN3c104impl23ExcludeDispatchKeyGuardC1ENS_14DispatchKeySetE", found.exclude_) &&
        get("_ZN3c104impl23ExcludeDispatchKeyGuardD1Ev", found.end_exclude_) &&
        get("_ZN3c104impl23IncludeDispatchKeyGuardC1ENS_14DispatchKeySetE", found.include_) &&
        get("_ZN3c104impl23IncludeDispatchKeyGuardD1Ev", found.end_include_) &&
        get("_ZNK3c1010TensorImpl13requires_gradEv", found.requires_grad_) &&
        get("_ZN3c1016parseDispatchKeyERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
            parse) &&
        get("_ZN3c1024getRuntimeDispatchKeySetENS_11DispatchKeyE", keys_of);
    if (!complete) return std::nullopt;
    try {
      found.autograd_of_backends_ = keys_of(parse("AutogradFunctionality"));
      found.autograd_of_others_ = keys_of(parse("AutogradOther"));
      found.autograd_ = found.autograd_of_backends_ | found.autograd_of_others_ |
                        keys_of(parse("AutogradNestedTensor"));
    } catch (const std::exception&) {
      return std::nullopt;  // a key of another name
    }
    return found;
  }

  template <typename Function>
  static bool get(const char* name, Function& function) {
    function = reinterpret_cast<Function>(find_in_torch(name));
    return function != nullptr;
  }

  Begin exclude_ = nullptr;
  End end_exclude_ = nullptr;
  Begin include_ = nullptr;
  End end_include_ = nullptr;
  bool (*requires_grad_)(const void* tensor_impl) = nullptr;
  Keys autograd_ = 0;
  Keys autograd_of_backends_ = 0;
  Keys autograd_of_others_ = 0;
};

// Whether an argument that still lies on the stack requires a gradient.
template <typename T>
struct NeedsGradient {
  static bool ask(const DispatchKeys&, StableIValue) { return false; }
};
template <>
struct NeedsGradient<Tensor> {
  static bool ask(const DispatchKeys& keys, StableIValue raw) {
    return keys.requires_grad(Value<Tensor>::handle(raw));
  }
};
template <typename T>
struct NeedsGradient<std::optional<T>> {
  static bool ask(const DispatchKeys& keys, StableIValue raw) {
    const auto* cell = torch::stable::detail::to<StableIValue*>(raw);
    return cell != nullptr && NeedsGradient<T>::ask(keys, *cell);
  }
};
template <typename T>
struct NeedsGradient<std::vector<T>> {
  static bool ask(const DispatchKeys& keys, StableIValue raw) {
    auto* const list = torch::stable::detail::to<StableListHandle>(raw);
    std::size_t size = 0;
    torch_list_size(list, &size);
    for (std::size_t i = 0; i < size; ++i) {
      StableIValue element = 0;
      torch_list_get_item(list, i, &element);
      if (NeedsGradient<T>::ask(keys, element)) return true;
    }
    return false;
  }
};
template <typename T>
struct NeedsGradient<HeaderOnlyArrayRef<T>> : NeedsGradient<std::vector<T>> {};

// What a kernel threw: an error that went through Python came to be "RuntimeError: <text>", with a
// list of Python's frames behind it.
CUSTOM_PYPTO_COLD inline std::string text_of_kernel(std::string reason) {
  reason.erase(std::min(reason.find("\n\nAt:\n"), reason.size()));
  const std::string type = "RuntimeError: ";
  if (reason.compare(0, type.size(), type) == 0) reason.erase(0, type.size());
  return reason;
}

// What a gate calls; lives as long as the op is registered.
struct GatedOp {
  std::string name;
  std::string overload;
};

// Where Gate<kernel> finds the op; set while an op with that kernel is registered.
template <auto kernel>
struct GateSlot {
  static inline const GatedOp* op = nullptr;
};

template <auto kernel, typename Arguments>
struct Gate;

template <auto kernel, typename... A>
struct Gate<kernel, std::tuple<A...>> {
  static void call(StableIValue* stack, uint64_t, uint64_t) {
    const DispatchKeys& keys = *DispatchKeys::find();
    const bool needed = aoti_torch_grad_mode_is_enabled() &&
                        any_needs(keys, stack, std::index_sequence_for<A...>());
    const GatedOp& op = *GateSlot<kernel>::op;
    const DispatchKeys::Scope scope(keys, needed);
    if (CUSTOM_PYPTO_UNLIKELY(torch_call_dispatcher(op.name.c_str(), op.overload.c_str(), stack,
                                                    TORCH_ABI_VERSION) != AOTI_TORCH_SUCCESS)) {
      throw std::runtime_error(text_of_kernel(torch_reason()));
    }
  }

 private:
  template <std::size_t... I>
  static bool any_needs(const DispatchKeys& keys, const StableIValue* stack,
                        std::index_sequence<I...>) {
    return (NeedsGradient<std::remove_cv_t<std::remove_reference_t<A>>>::ask(keys, stack[I]) ||
            ...);
  }
};

template <auto kernel>
inline constexpr auto gate =
    &Gate<kernel, typename FunctionTraits<decltype(kernel)>::Arguments>::call;

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
