// Refuses tensors that are not contiguous, for kernels that address elements by the shape alone:
//
//   CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnOp, custom_pypto_simulator::contiguous,
//                                  std::vector<at::Tensor> x, at::Tensor& y0) { ... }
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

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
  template <class T>
  static void check(const std::string& name, T& argument) {
    if constexpr (std::is_convertible_v<T&, at::Tensor&>) {
      at::Tensor& tensor = argument;
      need(name, tensor);
    } else if constexpr (std::is_same_v<std::remove_const_t<T>, std::vector<at::Tensor>>) {
      for (size_t i = 0; i < argument.size(); ++i) {
        need(name + "[" + std::to_string(i) + "]", argument[i]);
      }
    } else if constexpr (std::is_same_v<std::remove_const_t<T>, std::optional<at::Tensor>>) {
      if (argument.has_value()) need(name, *argument);
    }
  }

  static void need(const std::string& name, const at::Tensor& tensor) {
    if (!tensor.is_contiguous()) throw std::invalid_argument(name + " must be contiguous");
  }
};
inline constexpr Contiguous contiguous;

}  // namespace custom_pypto_simulator
