// The dtypes of numbers that kernels read. Includes nothing of torch, so that kernels may include
// it.
#pragma once

#include <custom_pypto/abi.h>
#include <stdint.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN

enum class Element : int { fp32, fp16, bf16, int8 };
// Tables with an entry for each floating-point dtype are in the order of Element.
inline constexpr int kFloatElements = 3;

namespace {  // a copy for each instruction set: none may be merged with another's

constexpr int64_t bytes_of(Element element) {
  return element == Element::fp32 ? 4 : element == Element::int8 ? 1 : 2;
}

}  // namespace

CUSTOM_PYPTO_NAMESPACE_END
