// Refuses tensors that are not contiguous, for kernels that address elements by the shape alone:
//
//   CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnOp, custom_pypto_simulator::contiguous,
//                                  std::vector<at::Tensor> x, at::Tensor& y0) { ... }
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "custom_pypto_simulator/argument.h"
#include "custom_pypto_simulator/need.h"

namespace custom_pypto_simulator {

class Contiguous {
 public:
  // Throws unless every tensor among the arguments is contiguous; needs no workspace.
  template <class... Args>
  uint64_t operator()(Args&... args) const {
    int number = 0;
    (check("argument " + std::to_string(++number), args), ...);
    return 0;
  }

 private:
  static void check(const std::string& name, const at::Tensor& tensor) {
    need(tensor.is_contiguous(), name, " must be contiguous");
  }
  static void check(const std::string& name, Output& output) {
    check(name, static_cast<at::Tensor&>(output));
  }
  static void check(const std::string& name, const std::optional<at::Tensor>& tensor) {
    if (tensor) check(name, *tensor);
  }
  static void check(const std::string& name, const std::vector<at::Tensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      check(name + "[" + std::to_string(i) + "]", tensors[i]);
    }
  }
  template <class Other>
  static void check(const std::string&, const Other&) {}
};
inline constexpr Contiguous contiguous;

}  // namespace custom_pypto_simulator
