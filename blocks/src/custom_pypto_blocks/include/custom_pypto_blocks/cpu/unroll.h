// Loops unrolled before the compiler allocates arrays: an array whose every index is a constant by
// then stays in registers. A pragma unrolls too late for that: the array is loaded and stored
// around each loop.
#pragma once

#include "vectors.h"

// For the lambdas that unroll() takes.
#define CUSTOM_PYPTO_INLINE_LAMBDA __attribute__((always_inline))

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

template <int... kIndex>
struct Indices {};

template <int kCount, int... kIndex>
struct IndicesTo : IndicesTo<kCount - 1, kCount - 1, kIndex...> {};

template <int... kIndex>
struct IndicesTo<0, kIndex...> {
  using List = Indices<kIndex...>;
};

template <class Body, int... kIndex>
inline __attribute__((always_inline)) void unroll(const Body& body, Indices<kIndex...>) {
  (body(kIndex), ...);
}

// body(0), body(1), ... body(kCount - 1).
template <int kCount, class Body>
inline __attribute__((always_inline)) void unroll(const Body& body) {
  unroll(body, typename IndicesTo<kCount>::List());
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
