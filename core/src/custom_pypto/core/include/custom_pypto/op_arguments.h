// What a boxed kernel does with its arguments before the kernel runs: it refuses None where the
// schema says Tensor, which torch lets through as an undefined tensor, and bumps version counters.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/mutation.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// An op's name and its arguments'; lives as long as the op is registered.
struct OpArguments {
  std::string op;
  std::vector<std::string> names;
  uint64_t mutable_arguments = 0;  // bit i: argument i

  // For argument `index` of the schema type Tensor or Tensor[]; others pass.
  template <typename T>
  void require(std::size_t index, const T& argument) const {
    if constexpr (std::is_same_v<T, Tensor>) {
      if (CUSTOM_PYPTO_UNLIKELY(!argument.defined())) {
        fail(op.c_str(), names[index].c_str(), "must be a tensor, got None");
      }
    } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
      for (std::size_t i = 0; i < argument.size(); ++i) {
        if (CUSTOM_PYPTO_UNLIKELY(!argument[i].defined())) {
          fail(op.c_str(), names[index].c_str(), "must hold tensors only, got None at index ", i);
        }
      }
    }
  }

  // For argument `index`, about to be passed to a kernel that writes.
  template <typename T>
  void bump(std::size_t index, const T& argument) const {
    if constexpr (holds_tensors<T>) {
      if ((mutable_arguments >> index & 1) != 0) {
        bump_version(op.c_str(), names[index].c_str(), argument);
      }
    }
  }
};

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
