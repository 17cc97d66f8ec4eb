// The vectors of the instruction set that this file is compiled for. Each instruction set has a
// header of its own, such as avx2.h. Here are the functions that compilers' own vector operations
// express. Together they give:
//
//   F32, I32                     kLanes numbers of fp32, of int32
//   kTileVectors                 panel vectors of a tile: its sums, these vectors and one broadcast
//                                must fit the registers
//   load, store                  at any alignment; Bf16 and Fp16 are widened and rounded to
//                                nearest; int8_t is only loaded
//   Int4Numbers(scale, shift)    its load(p, x) gives number * scale + shift of 2 * kLanes numbers
//                                of 4 bits, in x[0] of the first of each byte
//   broadcast, broadcast_int, zero
//   add, subtract, multiply, divide, bitwise_and
//   multiply_add(a, b, c)        a * b + c, rounded once if kMultiplyAddIsFused
//   max(a, b)                    b where either is NaN
//   to_float                     of int32
//   round(x)                     the nearest integer, for |x| < 2^22
//   scale_by_power(x, n)         x * 2^n for integers n <= 127; zero for n <= -150, and perhaps
//                                wherever n <= -127
//   reduce_add, reduce_max       over the lanes; the order of additions depends on nothing else
//   reduce_add4(a, b, c, d, out) each of four vectors summed over its lanes; of int32 too
//   transpose(rows)              row i, lane j becomes row j, lane i; moves bits
//   keep_at_least(values, threshold, position, kept, positions)
//                                of kLanes integers, writes those >= threshold to `kept`, and their
//                                positions (`position`, `position` + 1, ...) to `positions`, in
//                                order; both have room for kLanes; returns how many
//   int8_dot(acc, a, b)          acc + the products of the int8 numbers in each lane, four if
//                                kHasInt8Dot (b's unsigned if kInt8DotIsUnsigned), else two as
//                                int16
//   interleave(rows, at, out)    if kHasInt8Dot: of kInterleaved columns from `at` on, the numbers
//                                of a step's rows side by side, with 128 added if
//                                kInt8DotIsUnsigned
//
// If kHasBf16Dot, for pairs of bf16 numbers that are adjacent along a sum, the first in the low
// half:
//
//   Bf16Pairs, Bf16Pair          a pair in each lane, one pair for all lanes
//   load_pairs, store_pairs, load_pair
//   dot_accumulate(acc, a, b)    acc + a.first * b.first + a.second * b.second; takes subnormal
//                                numbers as zero
//   first_of, second_of          as fp32
//   round_to_pairs(first, second) the nearest pairs
//   pair_up(first, second)       the pairs (first[i], second[i]) for i < kLanes
//   pair_up_twice(first, second, low, high)
//                                the same, and the next kLanes pairs
//
// If kHasTiles, products in tile registers, of the same pairs if kHasBf16Dot, else of int8, a's
// unsigned; without kHasTiles these names stand for nothing:
//
//   kTileRows                    rows of a tile, and as many lanes and steps of pairs
//   Tiles                        an object; while it exists, tiles can be multiplied
//   multiply_tiles(a, a_stride, b, b_stride, steps, c, c_stride, is_wide, adds, between)
//                                c[r][lane] = sum of a[r][s] * b[s][lane] over s < steps, added to
//                                c if `adds`; of 2 * kTileRows rows and as many lanes, half of
//                                these if not `is_wide`; steps is a multiple of kTileRows, strides
//                                are in bytes; between() is called after each kTileRows steps
#pragma once

#ifndef CUSTOM_PYPTO_CPU_ISA
#error "name this source in tool.custom-pypto.isa of pyproject.toml: it is for one instruction set"
#endif

#define CUSTOM_PYPTO_QUOTE_(text) #text
#define CUSTOM_PYPTO_QUOTE(text) CUSTOM_PYPTO_QUOTE_(text)
#if !__has_include(CUSTOM_PYPTO_QUOTE(CUSTOM_PYPTO_CPU_ISA.h))
#error "this custom-pypto-blocks lacks an instruction set of custom-pypto-core: upgrade it"
#endif
#include CUSTOM_PYPTO_QUOTE(CUSTOM_PYPTO_CPU_ISA.h)

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// The macros are for code that names what other instruction sets do not have.
#ifdef CUSTOM_PYPTO_CPU_BF16_DOT
inline constexpr bool kHasBf16Dot = true;
#else
inline constexpr bool kHasBf16Dot = false;
#endif
#ifdef CUSTOM_PYPTO_CPU_TILES
inline constexpr bool kHasTiles = true;
#else
inline constexpr bool kHasTiles = false;
inline constexpr int64_t kTileRows = kLanes;
struct Tiles {};
template <class... Arguments>
void multiply_tiles(const Arguments&...);
#endif
#ifdef CUSTOM_PYPTO_CPU_INT8_DOT
inline constexpr bool kHasInt8Dot = true;
#else
inline constexpr bool kHasInt8Dot = false;
#endif
inline constexpr bool kHasBf16Tiles = kHasTiles && kHasBf16Dot;
inline constexpr bool kHasInt8Tiles = kHasTiles && !kHasBf16Dot;

inline F32 zero() { return F32{}; }
inline F32 add(F32 a, F32 b) { return a + b; }
inline F32 subtract(F32 a, F32 b) { return a - b; }
inline F32 multiply(F32 a, F32 b) { return a * b; }
inline F32 divide(F32 a, F32 b) { return a / b; }

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
