// The dtypes of activations, in the order of tables that have an entry for each. Includes nothing
// of torch, so that kernels may include it.
#pragma once

#include <custom_pypto/abi.h>
#include <stdint.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN

enum class Element : int { fp32, fp16, bf16 };
inline constexpr int kElements = 3;

namespace {  // a copy for each instruction set: none may be merged with another's

constexpr int64_t bytes_of(Element element) { return element == Element::fp32 ? 4 : 2; }

}  // namespace

CUSTOM_PYPTO_NAMESPACE_END
