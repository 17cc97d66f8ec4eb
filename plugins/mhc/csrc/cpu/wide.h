// Vectors of the numbers that a dtype is computed in: fp32 vectors, and for float64 one number.
#pragma once

#include <custom_pypto_blocks/cpu/unroll.h>

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

template <class Element>
struct Wide {
  using Number = float;
  using Vector = F32;
  static constexpr int64_t kWidth = kLanes;
  static constexpr Number kLeast = 0x1p-126F;  // the least normal number
  static constexpr Number kScale = 0x1p23F;    // a subnormal number times it is normal
};
template <>
struct Wide<double> {
  using Number = double;
  using Vector = double;
  static constexpr int64_t kWidth = 1;
  static constexpr Number kLeast = 0x1p-1022;
  static constexpr Number kScale = 0x1p52;
};
template <class Element>
using NumberOf = typename Wide<Element>::Number;
template <class Element>
using VectorOf = typename Wide<Element>::Vector;

inline double load(const double* p) { return *p; }
inline void store(double* p, double x) { *p = x; }
inline double add(double a, double b) { return a + b; }
inline double subtract(double a, double b) { return a - b; }
inline double multiply(double a, double b) { return a * b; }
inline double divide(double a, double b) { return a / b; }
inline double multiply_add(double a, double b, double c) { return a * b + c; }
inline double reduce_add(double x) { return x; }
inline void reduce_add4(double a, double b, double c, double d, double* out) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = d;
}
inline F32 spread(float x) { return broadcast(x); }
inline double spread(double x) { return x; }

template <class Number>
inline Number exponential(Number x) {
  return static_cast<Number>(__builtin_exp(static_cast<double>(x)));
}

// How much of a vector is read or written: all lanes, or the first ones.
struct Whole {};
struct Part {
  int64_t count;
};

template <class Element>
inline VectorOf<Element> get(const Element* from, Whole) {
  return load(from);
}
// The other lanes are zero.
template <class Element>
inline VectorOf<Element> get(const Element* from, Part part) {
  Element padded[Wide<Element>::kWidth] = {};
  for (int64_t i = 0; i < part.count; ++i) padded[i] = from[i];
  return load(padded);
}
template <class Element>
inline void put(Element* to, VectorOf<Element> x, Whole) {
  store(to, x);
}
template <class Element>
inline void put(Element* to, VectorOf<Element> x, Part part) {
  Element padded[Wide<Element>::kWidth];
  store(padded, x);
  for (int64_t i = 0; i < part.count; ++i) to[i] = padded[i];
}

// body(i, how) for each vector of `count` elements.
template <class Element, class Body>
inline __attribute__((always_inline)) void for_vectors(int64_t count, const Body& body) {
  constexpr int64_t kWidth = Wide<Element>::kWidth;
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) body(i, Whole{});
  if (i < count) body(i, Part{count - i});
}

template <class Element>
const Element* at(const void* data, int64_t index) {
  return static_cast<const Element*>(data) + index;
}
template <class Element>
Element* at(void* data, int64_t index) {
  return static_cast<Element*>(data) + index;
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
