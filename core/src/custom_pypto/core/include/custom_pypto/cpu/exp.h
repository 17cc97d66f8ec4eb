// exp of a vector.
#pragma once

#ifndef CUSTOM_PYPTO_CPU_LEVEL
#error "include custom_pypto/cpu/<level>.h first"
#endif

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL {
namespace {

// e^x for x <= 88, within 2 units in the last place; zero from about x < -87.7, -inf included; NaN
// for NaN.
inline F32 exp(F32 x) {
  // x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts so that n * high is exact.
  const F32 clamped = max(broadcast(-88.0f), x);
  const F32 n = round(multiply(clamped, broadcast(1.44269504088896341f)));
  F32 r = multiply_add(n, broadcast(-0.693359375f), clamped);
  r = multiply_add(n, broadcast(2.12194440e-4f), r);
  F32 p = broadcast(1.0f / 5040.0f);
  p = multiply_add(p, r, broadcast(1.0f / 720.0f));
  p = multiply_add(p, r, broadcast(1.0f / 120.0f));
  p = multiply_add(p, r, broadcast(1.0f / 24.0f));
  p = multiply_add(p, r, broadcast(1.0f / 6.0f));
  p = multiply_add(p, r, broadcast(0.5f));
  p = multiply_add(p, r, broadcast(1.0f));
  p = multiply_add(p, r, broadcast(1.0f));
  return multiply(p, power_of_two(n));
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL
