// The instruction set neon_bf16: neon_dot, and the dot product and conversion of bf16 (FEAT_BF16).
#pragma once

#define CUSTOM_PYPTO_CPU_BF16_DOT

#include "neon_dot.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using Bf16Pairs = bfloat16x8_t;
// In the first lane: the instruction multiplies by a chosen lane.
using Bf16Pair = bfloat16x4_t;

inline Bf16Pairs load_pairs(const char* p) {
  return vreinterpretq_bf16_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(p)));
}
inline void store_pairs(char* p, Bf16Pairs x) {
  vst1q_u8(reinterpret_cast<uint8_t*>(p), vreinterpretq_u8_bf16(x));
}
inline Bf16Pair load_pair(const char* p) {
  uint32_t pair;
  __builtin_memcpy(&pair, p, sizeof pair);
  return vreinterpret_bf16_u32(vset_lane_u32(pair, vdup_n_u32(0), 0));
}

// The instruction rounds to odd.
inline F32 dot_accumulate(F32 acc, Bf16Pairs a, Bf16Pair b) {
  return vbfdotq_lane_f32(acc, a, b, 0);
}

inline F32 first_of(Bf16Pairs x) {
  return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_bf16(x), 16));
}
inline F32 second_of(Bf16Pairs x) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_bf16(x), vdupq_n_u32(0xffff0000u)));
}

inline Bf16Pairs pair_bits(uint16x4_t first, uint16x4_t second) {
  const uint16x4x2_t pairs = vzip_u16(first, second);
  return vreinterpretq_bf16_u16(vcombine_u16(pairs.val[0], pairs.val[1]));
}
inline Bf16Pairs round_to_pairs(F32 first, F32 second) {
  return pair_bits(round_to_bf16(first), round_to_bf16(second));
}
inline Bf16Pairs pair_up(const Bf16* first, const Bf16* second) {
  return pair_bits(vld1_u16(&first->bits), vld1_u16(&second->bits));
}
inline void pair_up_twice(const Bf16* first, const Bf16* second, char* low, char* high) {
  const uint16x8x2_t pairs = vzipq_u16(vld1q_u16(&first->bits), vld1q_u16(&second->bits));
  store_pairs(low, vreinterpretq_bf16_u16(pairs.val[0]));
  store_pairs(high, vreinterpretq_bf16_u16(pairs.val[1]));
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
