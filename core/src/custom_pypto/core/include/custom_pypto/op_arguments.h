// What happens to arguments before a kernel runs: None where the schema says Tensor is refused
// (torch passes it as an undefined tensor), and those to be written to are announced.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/mutation.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// For argument `index`, of the schema type Tensor or Tensor[]; others pass. `Op` is a struct of
// ops.h.
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

// For argument `index`, about to be passed to a kernel that writes.
template <class Op, std::size_t index, typename T>
void add_if_mutable(Written& written, const T& argument) {
  if constexpr ((Op::mutable_arguments >> index & 1) != 0 && holds_tensors<T>) {
    written.add(Op::argument_names[index], argument);
  }
}

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
