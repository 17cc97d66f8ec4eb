// Ops that are one op of ATen, called by its name with the arguments of the aclnn call.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "custom_pypto_simulator/aclnn.h"

namespace custom_pypto_simulator {

// Passes the parameters to ATen's op in their order. Its results go into the outputs; torch_npu has
// chosen their types, to which copy_ converts. The first output of an `is_in_place` op is its first
// argument, too.
template <bool is_in_place, class... Args>
class AtenOp {
 public:
  explicit AtenOp(const char* name) : name_(name) {}

  void operator()(Args... args) const {
    torch::jit::Stack stack;
    std::vector<at::Tensor> outputs;
    (add<Args>(args, stack, outputs), ...);
    run_aten(name_, stack);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const at::Tensor& result = stack.at(i).toTensor();
      if (!result.is_same(outputs[i])) outputs[i].copy_(result);
    }
  }

 private:
  template <class Arg>
  static void add(const std::remove_reference_t<Arg>& value, torch::jit::Stack& stack,
                  std::vector<at::Tensor>& outputs) {
    if constexpr (std::is_same_v<Arg, at::Tensor&>) {
      if (is_in_place && outputs.empty()) stack.emplace_back(value);
      outputs.push_back(value);
    } else if constexpr (std::is_same_v<Arg, at::Scalar>) {
      // For a schema, a bool is no Scalar.
      stack.emplace_back(value.isBoolean() ? at::Scalar(value.toLong()) : value);
    } else if constexpr (!std::is_same_v<Arg, int8_t>) {  // CANN's cubeMathType: a precision
      stack.emplace_back(value);
    }
  }

  const char* name_;
};

}  // namespace custom_pypto_simulator

#define CUSTOM_PYPTO_SIM_ATEN_DEFINE(aclnn_name, aten_name, is_in_place, ...) \
  namespace {                                                                 \
  struct aclnn_name##_aten {                                                  \
    using Signature = void(__VA_ARGS__);                                      \
    static constexpr const char* name() { return #aclnn_name; }               \
    static auto pointer() {                                                   \
      using Op = ::custom_pypto_simulator::AtenOp<is_in_place, __VA_ARGS__>;  \
      return Op("aten::" aten_name);                                          \
    }                                                                         \
    template <class Kernel>                                                   \
    static typename Kernel::Plan plan() {                                     \
      return nullptr;                                                         \
    }                                                                         \
  };                                                                          \
  }                                                                           \
  CUSTOM_PYPTO_SIM_ACLNN_PHASES(aclnn_name, aclnn_name##_aten)

// The types of the parameters follow ATen's name.
#define ATEN(name, aten_name, ...) \
  CUSTOM_PYPTO_SIM_ATEN_DEFINE(aclnn##name, aten_name, false, __VA_ARGS__)
#define ATEN_INPLACE(name, aten_name, ...)                          \
  CUSTOM_PYPTO_SIM_ATEN_DEFINE(aclnnInplace##name, aten_name, true, \
                               at::Tensor& __VA_OPT__(, ) __VA_ARGS__)
// Out of place and in place; the types are those of the parameters after `self`.
#define ATEN_BOTH(name, aten_name, ...)                                     \
  ATEN(name, aten_name, at::Tensor __VA_OPT__(, ) __VA_ARGS__, at::Tensor&) \
  ATEN_INPLACE(name, aten_name __VA_OPT__(, ) __VA_ARGS__)
