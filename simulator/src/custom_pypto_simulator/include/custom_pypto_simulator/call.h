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

// Replaces the arguments of a torch op, which `name` is ("aten::sum.dim_IntList" with an overload),
// by its results. Arguments are checked against the schema; trailing ones that have a default may
// be left out. Throws what the op throws, or when there is no such op.
inline void run_aten(const std::string& name, torch::jit::Stack& stack) {
  const auto dot = name.find('.');
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  const auto op = c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload});
  if (!op) throw std::runtime_error(name + " is no registered torch op; import what defines it");
  op->schema().checkAndNormalizeInputs(stack);
  op->callBoxed(stack);
}

// Calls a torch op by its name, such as "custom_pypto::add_custom", through the dispatcher.
// `Result` is the type of its one result, a tuple of the types of all its results, or void, which
// ignores them.
template <class Result, class... Args>
Result call(const std::string& name, Args&&... args) {
  torch::jit::Stack stack{c10::IValue(std::forward<Args>(args))...};
  run_aten(name, stack);
  if constexpr (!std::is_void_v<Result>) {
    const bool is_one = stack.size() == 1;
    return (is_one ? stack[0] : c10::IValue(c10::ivalue::Tuple::create(stack))).to<Result>();
  }
}

// Calls a torch op, and copies its results into the tensors of `outputs`, a std::tie of them.
template <class Outputs, class... Args>
void call_into(const Outputs& outputs, const std::string& name, Args&&... args) {
  torch::jit::Stack stack{c10::IValue(std::forward<Args>(args))...};
  run_aten(name, stack);
  size_t next = 0;
  std::apply([&](auto&... output) { (output.copy_(stack.at(next++).toTensor()), ...); }, outputs);
}

}  // namespace custom_pypto_simulator
