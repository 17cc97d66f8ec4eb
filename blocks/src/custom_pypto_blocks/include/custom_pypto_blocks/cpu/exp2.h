// Powers of two of a vector.
#pragma once

#include "vectors.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// 2^x for x <= 127, within 3 units in the last place; zero for x <= -150, -inf included, and
// perhaps from about -126.5 on; NaN for NaN.
inline F32 exp2(F32 x) {
  // x = n + r, |r| <= 1/2. The polynomial has the least relative error of those that are 1 at 0.
  const F32 clamped = max(broadcast(-150.0f), x);
  const F32 n = round(clamped);
  const F32 r = subtract(clamped, n);
  F32 p = broadcast(0.001326472731307149f);
  p = multiply_add(p, r, broadcast(0.009671512991189957f));
  p = multiply_add(p, r, broadcast(0.05550733581185341f));
  p = multiply_add(p, r, broadcast(0.24022242426872253f));
  p = multiply_add(p, r, broadcast(0.6931470036506653f));
  p = multiply_add(p, r, broadcast(1.0f));
  return scale_by_power(p, n);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
