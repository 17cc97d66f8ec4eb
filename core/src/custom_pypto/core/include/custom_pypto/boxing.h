// Boxing: the function that libtorch calls with a stack of 64-bit values, made from a kernel.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/argument_memory.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/message.h>
#include <custom_pypto/value.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// A function's C++ type as tuples of its arguments and results.
template <typename R>
struct ReturnTypes {
  using Tuple = std::tuple<std::remove_cv_t<R>>;
};
template <>
struct ReturnTypes<void> {
  using Tuple = std::tuple<>;
};
template <typename... R>
struct ReturnTypes<std::tuple<R...>> {
  using Tuple = std::tuple<R...>;
};

template <typename F>
struct FunctionTraits;
template <typename R, typename... A>
struct FunctionTraits<R (*)(A...)> {
  using Return = R;
  using Returns = typename ReturnTypes<R>::Tuple;
  using Arguments = std::tuple<A...>;
};

// Releases stack elements [begin, end) when it goes out of scope.
template <std::size_t Size>
struct StackGuard {
  StableIValue* stack;
  const std::array<Release, Size>& release;
  std::size_t begin;
  std::size_t end;

  ~StackGuard() {
    for (; begin < end; ++begin) release[begin](stack[begin]);
  }

  // Returns the first guarded element, and its ownership.
  StableIValue next() { return stack[begin++]; }
};

template <typename Tuple>
struct Elements;
template <typename... T>
struct Elements<std::tuple<T...>> {
  static constexpr std::size_t count = sizeof...(T);
  static constexpr std::array<Release, count> release{&ValueOf<T>::release...};
};

// Passes a parameter of type P to the kernel: its own copy if P is a value, else a view.
template <typename P, typename Storage>
decltype(auto) pass(Storage& stored) {
  if constexpr (std::is_same_v<std::remove_cv_t<P>, Storage> || std::is_rvalue_reference_v<P>) {
    return std::move(ValueOf<P>::view(stored));
  } else {
    return ValueOf<P>::view(stored);
  }
}

// The arguments of a running kernel, converted in order. Bases rather than a std::tuple: each is
// built in place, and destroyed if a later one throws.
template <std::size_t I, typename A>
struct ArgumentSlot {
  typename ValueOf<A>::Storage value;

  template <typename Guard>
  explicit ArgumentSlot(Guard& guard) : value(ValueOf<A>::from_stack(guard.next())) {}
};

template <typename Indices, typename... A>
struct ArgumentSlots;
template <std::size_t... I, typename... A>
struct ArgumentSlots<std::index_sequence<I...>, A...> : ArgumentSlot<I, A>... {
  explicit ArgumentSlots(StableIValue* stack)
      : ArgumentSlots(StackGuard<sizeof...(A)>{stack, Elements<std::tuple<A...>>::release, 0,
                                               sizeof...(A)}) {}

 private:
  explicit ArgumentSlots([[maybe_unused]] StackGuard<sizeof...(A)>&& guard)
      : ArgumentSlot<I, A>(guard)... {}
};

// Refuses None for argument `index` where the schema says Tensor or Tensor[]: torch passes it as an
// undefined tensor. `Op` is a struct of ops.h.
template <class Op, std::size_t index, typename T>
void require_tensors(const T& argument) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (CUSTOM_PYPTO_UNLIKELY(!argument.defined())) {
      fail(Op::name, Op::argument_names[index], "must be a tensor, got None");
    }
  } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
    for (std::size_t i = 0; i < argument.size(); ++i) {
      if (CUSTOM_PYPTO_UNLIKELY(!argument[i].defined())) {
        fail(Op::name, Op::argument_names[index], "must hold tensors only, got None at index ", i);
      }
    }
  }
}

// Calls `function` with the name of each tensor of an argument, and the tensor.
template <typename T, typename Function>
void for_each_tensor(ArgumentName, const T&, const Function&) {}
template <typename Function>
void for_each_tensor(ArgumentName name, const Tensor& tensor, const Function& function) {
  function(name, tensor);
}
template <typename T, typename Function>
void for_each_tensor(ArgumentName name, const std::vector<T>& argument, const Function& function);
template <typename T, typename Function>
void for_each_tensor(ArgumentName name, const std::optional<T>& argument,
                     const Function& function) {
  if (argument.has_value()) for_each_tensor(name, *argument, function);
}
template <typename T, typename Function>
void for_each_tensor(ArgumentName name, const std::vector<T>& argument, const Function& function) {
  int64_t index = 0;
  for (const T& each : argument) for_each_tensor({name.name, index++}, each, function);
}

template <class Op, std::size_t index, typename T>
void expect_memory_of(const T& argument) {
  for_each_tensor(Op::argument_names[index], argument, [](ArgumentName name, const Tensor& tensor) {
    expect_memory(Op::name, name, tensor);
  });
}

template <class Op, std::size_t index>
inline constexpr bool is_written = (Op::mutable_arguments >> index & 1) != 0;

template <class Op, std::size_t index, bool writes, typename T>
void add_to(MutatedArguments& mutated, const T& argument) {
  if constexpr (is_written<Op, index> == writes) {
    for_each_tensor(Op::argument_names[index], argument,
                    [&](ArgumentName name, const Tensor& tensor) {
                      writes ? mutated.add(name, tensor) : mutated.add_read(name, tensor);
                    });
  }
}

// Throws the exception in flight. An error of a function that the kernel called, such as
// "aten::contiguous: <reason>", gets the op's name before it.
[[noreturn]] CUSTOM_PYPTO_COLD inline void rethrow_by_name(const char* op) {
  constexpr std::string_view kNoMemory = "there is not enough memory";
  try {
    throw;
  } catch (const std::bad_alloc&) {
    fail(op, nullptr, kNoMemory);
  } catch (const std::length_error&) {
    // A vector says this of more elements than any machine has memory for.
    fail(op, nullptr, kNoMemory);
  } catch (const std::runtime_error& error) {
    const std::string_view text = error.what();
    // torch's own headers throw this without the reason.
    if (text.find(" API call failed at ") != text.npos) fail(op, nullptr, torch_reason());
    if (text.substr(0, text.find(": ")).find("::") != text.npos) fail(op, nullptr, text);
    throw;
  }
}

template <class Op, auto kernel, bool uses_memory, typename Arguments, typename Returns>
struct Boxed;

template <class Op, auto kernel, bool uses_memory, typename... A, typename... R>
struct Boxed<Op, kernel, uses_memory, std::tuple<A...>, std::tuple<R...>> {
  static void call(StableIValue* stack, uint64_t, uint64_t) {
    call_with(stack, std::index_sequence_for<A...>(), std::index_sequence_for<R...>());
  }

 private:
  using Return = typename FunctionTraits<decltype(kernel)>::Return;

  template <std::size_t... I, std::size_t... O>
  static void call_with(StableIValue* stack, std::index_sequence<I...> inputs,
                        std::index_sequence<O...> outputs) {
    ArgumentSlots<decltype(inputs), A...> slots(stack);
    (require_tensors<Op, I>(static_cast<ArgumentSlot<I, A>&>(slots).value), ...);
    if constexpr (uses_memory) {
      (expect_memory_of<Op, I>(static_cast<ArgumentSlot<I, A>&>(slots).value), ...);
    }
    if constexpr (uses_memory && Op::mutable_arguments != 0) {
      // Before the kernel runs: if a write is refused, nothing is written. A kernel that throws
      // leaves a bumped version, which is harmless.
      MutatedArguments mutated(Op::name);
      (add_to<Op, I, true>(mutated, static_cast<ArgumentSlot<I, A>&>(slots).value), ...);
      (add_to<Op, I, false>(mutated, static_cast<ArgumentSlot<I, A>&>(slots).value), ...);
      mutated.bump();
    }
    const auto run = [&]() -> Return {
      try {
        return kernel(pass<A>(static_cast<ArgumentSlot<I, A>&>(slots).value)...);
      } catch (...) {
        rethrow_by_name(Op::name);
      }
    };
    if constexpr (std::is_void_v<Return>) {
      run();
    } else if constexpr (std::is_same_v<Return, std::tuple<R...>>) {
      push(stack, run(), outputs);
    } else {
      stack[0] = ValueOf<Return>::to_stack(run());
    }
  }

  template <std::size_t... O>
  static void push(StableIValue* stack, const std::tuple<R...>& results,
                   std::index_sequence<O...>) {
    StackGuard<sizeof...(R)> guard{stack, Elements<std::tuple<R...>>::release, 0, 0};
    ((stack[O] = ValueOf<R>::to_stack(std::get<O>(results)), ++guard.end), ...);
    guard.end = 0;
  }
};

using BoxedKernel = void (*)(StableIValue*, uint64_t, uint64_t);

template <class Op, auto kernel, bool uses_memory>
inline constexpr BoxedKernel boxed_kernel =
    &Boxed<Op, kernel, uses_memory, typename FunctionTraits<decltype(kernel)>::Arguments,
           typename FunctionTraits<decltype(kernel)>::Returns>::call;

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
