// The instruction set neon: what every 64-bit Arm processor has, with fused multiplication and fp16
// conversion.
#pragma once

#include <arm_neon.h>

#include "scalar.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using F32 = float32x4_t;
using I32 = int32x4_t;

inline constexpr int kLanes = 4;
inline constexpr int kTileVectors = 4;

inline F32 load(const float* p) { return vld1q_f32(p); }
inline void store(float* p, F32 x) { vst1q_f32(p, x); }
inline F32 broadcast(float x) { return vdupq_n_f32(x); }

inline constexpr bool kMultiplyAddIsFused = true;
inline F32 multiply_add(F32 a, F32 b, F32 c) { return vfmaq_f32(c, a, b); }
// Not vmaxq_f32 or vmaxnmq_f32, which give NaN or the other number where one is NaN.
inline F32 max(F32 a, F32 b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
inline F32 bitwise_and(F32 a, F32 b) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b)));
}

inline I32 load(const int32_t* p) { return vld1q_s32(p); }
inline void store(int32_t* p, I32 x) { vst1q_s32(p, x); }
inline I32 broadcast_int(int32_t x) { return vdupq_n_s32(x); }
inline I32 max(I32 a, I32 b) { return vmaxq_s32(a, b); }
inline F32 to_float(I32 x) { return vcvtq_f32_s32(x); }
#ifndef CUSTOM_PYPTO_CPU_INT8_DOT
inline I32 int8_dot(I32 acc, I32 a, I32 b) {
  const int16x8_t x = vreinterpretq_s16_s32(a);
  const int16x8_t y = vreinterpretq_s16_s32(b);
  const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y));
  return vaddq_s32(acc, vpaddq_s32(low, vmull_high_s16(x, y)));
}
#endif

inline F32 round(F32 x) { return vrndnq_f32(x); }
inline F32 scale_by_power(F32 x, F32 n) {
  const int32x4_t exponent = vmaxq_s32(vcvtq_s32_f32(n), vdupq_n_s32(-127));
  const int32x4_t biased = vaddq_s32(exponent, vdupq_n_s32(127));
  return vmulq_f32(x, vreinterpretq_f32_s32(vshlq_n_s32(biased, 23)));
}

// The nearest bf16 numbers, as bits.
inline uint16x4_t round_to_bf16(F32 x) {
#ifndef CUSTOM_PYPTO_CPU_BF16_DOT
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t up = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), up, quiet), 16);
#else
  return vreinterpret_u16_bf16(vcvt_bf16_f32(x));
#endif
}

inline F32 load(const Bf16* p) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(&p->bits), 16));
}
inline F32 load(const Fp16* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&p->bits))); }
inline F32 load(const int8_t* p) {
  uint32_t bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(bytes)))));
}
struct Int4Numbers {
  F32 scales, shifts;
  Int4Numbers() = default;
  Int4Numbers(float scale, float shift) : scales(broadcast(scale)), shifts(broadcast(shift)) {}
  inline void load(const Int4* p, F32 (&x)[2]) const {
    uint32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    const int8x8_t bytes = vreinterpret_s8_u32(vdup_n_u32(four));
    const int16x4_t first = vget_low_s16(vmovl_s8(vshr_n_s8(vshl_n_s8(bytes, 4), 4)));
    const int16x4_t second = vget_low_s16(vmovl_s8(vshr_n_s8(bytes, 4)));
    x[0] = multiply_add(vcvtq_f32_s32(vmovl_s16(first)), scales, shifts);
    x[1] = multiply_add(vcvtq_f32_s32(vmovl_s16(second)), scales, shifts);
  }
};
inline void store(Bf16* p, F32 x) { vst1_u16(&p->bits, round_to_bf16(x)); }
inline void store(Fp16* p, F32 x) { vst1_u16(&p->bits, vreinterpret_u16_f16(vcvt_f16_f32(x))); }

inline void reduce_add4(F32 a, F32 b, F32 c, F32 d, float* out) {
  store(out, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
}
inline void reduce_add4(I32 a, I32 b, I32 c, I32 d, int32_t* out) {
  store(out, vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d)));
}
inline float reduce_add(F32 x) { return vaddvq_f32(x); }
inline float reduce_max(F32 x) { return vmaxvq_f32(x); }

inline void transpose(F32 (&rows)[kLanes]) {
  const float32x4x2_t a = vtrnq_f32(rows[0], rows[1]);
  const float32x4x2_t b = vtrnq_f32(rows[2], rows[3]);
  for (int i = 0; i < 2; ++i) {
    rows[i] = vcombine_f32(vget_low_f32(a.val[i]), vget_low_f32(b.val[i]));
    rows[i + 2] = vcombine_f32(vget_high_f32(a.val[i]), vget_high_f32(b.val[i]));
  }
}

// For every set of lanes (bit i for lane i), the byte indices that move its lanes to the front, and
// the number of its lanes.
struct LaneSets {
  uint8_t front[16][16];
  uint8_t size[16];

  constexpr LaneSets() : front(), size() {
    for (int set = 0; set < 16; ++set) {
      for (int lane = 0; lane < kLanes; ++lane) {
        if ((set >> lane & 1) == 0) continue;
        for (int byte = 0; byte < 4; ++byte) {
          front[set][size[set] * 4 + byte] = static_cast<uint8_t>(lane * 4 + byte);
        }
        ++size[set];
      }
    }
  }
};
inline constexpr LaneSets kLaneSets;

inline int keep_at_least(const int32_t* values, int32_t threshold, int32_t position, int32_t* kept,
                         int32_t* positions) {
  static constexpr int32_t kLane[kLanes] = {0, 1, 2, 3};
  static constexpr uint32_t kBit[kLanes] = {1, 2, 4, 8};
  const int32x4_t x = vld1q_s32(values);
  const uint32x4_t keep = vcgeq_s32(x, vdupq_n_s32(threshold));
  const uint32_t set = vaddvq_u32(vandq_u32(keep, vld1q_u32(kBit)));
  if (set == 0) return 0;
  const uint8x16_t front = vld1q_u8(kLaneSets.front[set]);
  const int32x4_t at = vaddq_s32(vdupq_n_s32(position), vld1q_s32(kLane));
  vst1q_s32(kept, vreinterpretq_s32_u8(vqtbl1q_u8(vreinterpretq_u8_s32(x), front)));
  vst1q_s32(positions, vreinterpretq_s32_u8(vqtbl1q_u8(vreinterpretq_u8_s32(at), front)));
  return kLaneSets.size[set];
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
