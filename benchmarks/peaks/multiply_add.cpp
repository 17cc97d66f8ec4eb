// The loop of each instruction set: dot products of bf16 pairs where it has them, else fused
// multiply-adds of fp32.
#include <custom_pypto_blocks/cpu/unroll.h>

#include "chains.h"
#include "units.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

#if defined(CUSTOM_PYPTO_CPU_BF16_DOT)
inline constexpr int kFlopPerLane = 4;
using Factor = Bf16Pair;
using Factors = Bf16Pairs;
inline Factor factor(F32 x) {
  float lanes[kLanes];
  store(lanes, x);
  return load_pair(reinterpret_cast<const char*>(lanes));
}
inline Factors factors(F32 x) {
  float lanes[kLanes];
  store(lanes, x);
  return load_pairs(reinterpret_cast<const char*>(lanes));
}
inline F32 step(F32 sum, Factors a, Factor b) { return dot_accumulate(sum, a, b); }
#else
inline constexpr int kFlopPerLane = 2;
using Factor = F32;
using Factors = F32;
inline Factor factor(F32 x) { return x; }
inline Factors factors(F32 x) { return x; }
inline F32 step(F32 sum, Factors a, Factor b) { return multiply_add(a, b, sum); }
#endif

float run(int64_t rounds, float operand) {
  const Factors a = factors(broadcast(operand));
  const Factor b = factor(broadcast(operand));
  F32 sums[kChains];
  // Different initial values: the compiler would compute equal sums once.
  unroll<kChains>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
    sums[i] = broadcast(operand * static_cast<float>(i));
  });
  for (int64_t round = 0; round < rounds; ++round) {
    unroll<kChains>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA { sums[i] = step(sums[i], a, b); });
  }
  F32 total = zero();
  unroll<kChains>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA { total = add(total, sums[i]); });
  return reduce_add(total);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

namespace custom_pypto_peaks {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr Unit CUSTOM_PYPTO_OF_ISA(unit) = {isa::kChains * isa::kLanes * isa::kFlopPerLane,
                                            &isa::run};

}  // namespace custom_pypto_peaks
