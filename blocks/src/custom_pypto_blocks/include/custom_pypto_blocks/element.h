// The Element of a dtype, and the C++ type of an Element.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dtype.h>
#include <custom_pypto_blocks/cpu/element.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// The Element of a dtype that has one.
inline Element element_of(ScalarType dtype) {
  if (dtype == ScalarType::BFloat16) return Element::bf16;
  if (dtype == ScalarType::Half) return Element::fp16;
  if (dtype == ScalarType::Float8_e4m3fn) return Element::e4m3;
  return dtype == ScalarType::Char ? Element::int8 : Element::fp32;
}

// Calls f with a value of the C++ type of `element`, which is fp32, fp16 or bf16.
template <class F>
void visit_element(Element element, const F& f) {
  if (element == Element::fp32) return f(float{});
  if (element == Element::fp16) return f(Half{});
  return f(BFloat16{});
}

CUSTOM_PYPTO_NAMESPACE_END
