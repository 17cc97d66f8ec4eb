// The Element of a dtype, and the C++ type of an Element.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dtype.h>
#include <custom_pypto_blocks/cpu/element.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// The Element of a dtype; throws std::runtime_error if it has none.
inline Element element_of(ScalarType dtype) {
  if (dtype == ScalarType::BFloat16) return Element::bf16;
  if (dtype == ScalarType::Half) return Element::fp16;
  if (dtype == ScalarType::Float8_e4m3fn) return Element::e4m3;
  if (dtype == ScalarType::Char) return Element::int8;
  check(dtype == ScalarType::Float, "custom_pypto::element_of", "dtype", "has no Element: ", dtype);
  return Element::fp32;
}

// Calls f with a value of the C++ type of `element`, which is fp32, fp16 or bf16.
template <class F>
void visit_element(Element element, const F& f) {
  if (element == Element::fp32) return f(float{});
  if (element == Element::fp16) return f(Half{});
  return f(BFloat16{});
}

CUSTOM_PYPTO_NAMESPACE_END
