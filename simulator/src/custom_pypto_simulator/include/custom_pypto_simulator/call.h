// Calls of torch ops by name.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace custom_pypto_simulator {

template <class Result>
struct Results {
  static Result take(torch::jit::Stack& stack) { return stack.at(0).to<Result>(); }
};

template <>
struct Results<void> {
  static void take(torch::jit::Stack&) {}
};

template <class... Elements>
struct Results<std::tuple<Elements...>> {
  static std::tuple<Elements...> take(torch::jit::Stack& stack) {
    return take(stack, std::index_sequence_for<Elements...>());
  }

 private:
  template <size_t... I>
  static std::tuple<Elements...> take(torch::jit::Stack& stack, std::index_sequence<I...>) {
    return {stack.at(I).to<Elements>()...};
  }
};

// Calls a torch op by its name ("custom_pypto::add_custom", or "aten::sum.dim_IntList" with an
// overload) through the dispatcher. Arguments are checked against the schema; trailing ones that
// have a default may be left out. Throws what the op throws, or when there is no such op.
template <class Result, class... Args>
Result call(const std::string& name, Args&&... args) {
  const auto dot = name.find('.');
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  const auto op = c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload});
  if (!op) throw std::runtime_error(name + " is no registered torch op; import what defines it");
  torch::jit::Stack stack{c10::IValue(std::forward<Args>(args))...};
  op->schema().checkAndNormalizeInputs(stack);
  op->callBoxed(stack);
  return Results<Result>::take(stack);
}

}  // namespace custom_pypto_simulator
