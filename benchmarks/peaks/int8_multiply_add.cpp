// The loop of each instruction set: dot products of int8 where it has them, else of int16.
#include <custom_pypto_blocks/cpu/int8_tile.h>

#include "chains.h"
#include "units.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

float run(int64_t rounds, float operand) {
  const I32 a = broadcast_int(static_cast<int32_t>(operand * 1e9F));
  const I32 b = broadcast_int(static_cast<int32_t>(operand * 2e9F));
  I32 sums[kChains];
  unroll<kChains>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA { sums[i] = broadcast_int(i); });
  for (int64_t round = 0; round < rounds; ++round) {
    unroll<kChains>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      sums[i] = Int8Operand::accumulate(sums[i], b, a);
    });
  }
  F32 total = zero();
  unroll<kChains>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA { total = add(total, to_float(sums[i])); });
  return reduce_add(total);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

namespace custom_pypto_peaks {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

constexpr Unit CUSTOM_PYPTO_OF_ISA(int8_unit) = {
    isa::kChains * isa::kLanes * isa::Int8Operand::kDepth * 2, &isa::run};

}  // namespace custom_pypto_peaks
