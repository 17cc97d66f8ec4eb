// The dtypes of numbers that kernels read. Includes nothing of torch, so that kernels may include
// it.
#pragma once

#include <custom_pypto/abi.h>
#include <stdint.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN

enum class Element : int { fp32, fp16, bf16, int8, e4m3 };
// Tables with an entry for each floating-point dtype of 16 or 32 bits are in the order of Element.
inline constexpr int kFloatElements = 3;

namespace {  // a copy for each instruction set: none may be merged with another's

constexpr int64_t bytes_of(Element element) {
  return element == Element::fp32                               ? 4
         : element == Element::int8 || element == Element::e4m3 ? 1
                                                                : 2;
}

}  // namespace

CUSTOM_PYPTO_NAMESPACE_END
