// Calls of torch ops by name.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace custom_pypto_simulator {

// Calls a torch op by its name ("custom_pypto::add_custom", or "aten::sum.dim_IntList" with an
// overload) through the dispatcher. `Result` is the type of its one result, a tuple of the types of
// all its results, or void, which ignores them. Arguments are checked against the schema; trailing
// ones that have a default may be left out. Throws what the op throws, or when there is no such op.
template <class Result, class... Args>
Result call(const std::string& name, Args&&... args) {
  const auto dot = name.find('.');
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  const auto op = c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload});
  if (!op) throw std::runtime_error(name + " is no registered torch op; import what defines it");
  torch::jit::Stack stack{c10::IValue(std::forward<Args>(args))...};
  op->schema().checkAndNormalizeInputs(stack);
  op->callBoxed(stack);
  if constexpr (!std::is_void_v<Result>) {
    const bool is_one = stack.size() == 1;
    return (is_one ? stack[0] : c10::IValue(c10::ivalue::Tuple::create(stack))).to<Result>();
  }
}

}  // namespace custom_pypto_simulator
