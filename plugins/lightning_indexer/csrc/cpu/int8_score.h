// score = sum over heads of weight * max(query scale * key scale * (query head . key), 0), of int8
// numbers, fused in registers, as ranks.
//
// Only the signs of scales matter to the maximum: it is taken of the dot product or its negative,
// then multiplied by weight * |query scale|, and the sum by |key scale|. Where no scale is negative
// signs are not read; the bits are the same.
//
// As in score.h one tile is kTileKeys keys against all heads; here the dot products are exact, and
// the sum over heads has one order, so that a score has the same bits at every instruction set:
// head h is added, by a fused multiply-add, to the sum h % kHeadSums in the order of h, then the
// upper half of the sums to the lower one, and so on.
#pragma once

#include <custom_pypto_blocks/cpu/int8_tile.h>

#include "indexer_kernels.h"
#include "integer_vectors.h"
#include "key_cursor.h"
#include "rank.h"
#include "rows.h"
#include "scales.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_lightning_indexer::Query;
using custom_pypto_lightning_indexer::ScoreRange;

inline constexpr int64_t kHeadSums = 16;
inline constexpr int kSumVectors = kHeadSums / kLanes;
inline constexpr int kPanelVectors = kTileVectors > kSumVectors ? kTileVectors : kSumVectors;
static_assert(kTokenBlock % kTileKeys == 0 && kTokenBlock % kLanes == 0);

// A packed row: what each head is multiplied by, what its dot products start from, -1 where its
// scale is negative, then the panels of kPanelVectors vectors of heads (the last panel may be
// narrower). Padding is zero.
struct PackedRow {
  const float* weights;
  const int32_t* start;
  const int32_t* signs;
  const char* panels;
};

struct RowShape {
  int64_t vectors;  // of heads
  int64_t steps;

  RowShape(const Keys& keys, int64_t heads)
      : vectors((heads + kHeadSums - 1) / kHeadSums * kSumVectors), steps(int8_steps(keys.depth)) {}

  int64_t lanes() const { return vectors * kLanes; }
  int64_t panels_at() const { return align(lanes() * 12); }
  int64_t bytes() const { return panels_at() + align(steps * lanes() * Int8Operand::kStepBytes); }
  PackedRow row(const char* packed) const {
    const float* weights = reinterpret_cast<const float*>(packed);
    const int32_t* start = reinterpret_cast<const int32_t*>(weights + lanes());
    return {weights, start, start + lanes(), packed + panels_at()};
  }
};

inline int64_t packed_row_bytes(const Keys& keys, int64_t heads) {
  return RowShape(keys, heads).bytes();
}

inline bool is_any_set(const int32_t* signs, int64_t count) {
  int32_t any = 0;
  for (int64_t i = 0; i < count; ++i) any |= signs[i];
  return any != 0;
}

inline void pack_panel(const Query& query, int64_t first_head, int64_t heads, int64_t lanes,
                       int64_t depth, char* panel, int32_t* start) {
  const int8_t* data = reinterpret_cast<const int8_t*>(query.data) + first_head * query.head_stride;
  if (kHasInt8Dot && query.stride == 1 && depth % Int8Operand::kDepth == 0) {
    const int64_t steps = int8_steps(depth);
    pack_rows<Int8Step>(reinterpret_cast<const char*>(data), query.head_stride, heads, lanes, steps,
                        panel);
    return start_int8_sums(panel, lanes, steps, start);
  }
  pack_int8(
      [&](int64_t head, int64_t k) { return data[head * query.head_stride + k * query.stride]; },
      heads, lanes, depth, panel, start);
}

inline void pack(const Keys& keys, const Query& query, char* packed) {
  const RowShape shape(keys, query.heads);
  float* weights = reinterpret_cast<float*>(packed);
  int32_t* start = reinterpret_cast<int32_t*>(weights + shape.lanes());
  int32_t* signs = start + shape.lanes();
  float* scales = reinterpret_cast<float*>(start);  // until the panels are packed
  widen_row(query.weights, query.weight_element, query.weight_stride, query.heads, weights);
  widen_row(query.scales, query.scale_element, query.scale_stride, query.heads, scales);
  split_signs(scales, query.heads, signs);
  for (int64_t h = 0; h < query.heads; ++h) weights[h] *= scales[h];
  for (int64_t h = query.heads; h < shape.lanes(); ++h) {
    weights[h] = 0.0f;
    signs[h] = 0;
  }
  char* panel = packed + shape.panels_at();
  constexpr int64_t kPanelLanes = int64_t{kPanelVectors} * kLanes;
  for (int64_t first = 0; first < shape.lanes(); first += kPanelLanes) {
    const int64_t left = shape.lanes() - first;
    const int64_t lanes = left < kPanelLanes ? left : kPanelLanes;
    const int64_t heads = query.heads - first < lanes ? query.heads - first : lanes;
    pack_panel(query, first, heads, lanes, keys.depth, panel, start + first);
    panel += shape.steps * lanes * Int8Operand::kStepBytes;
  }
}

// a * b + c, rounded once.
inline F32 fused_multiply_add(F32 a, F32 b, F32 c) {
  if (kMultiplyAddIsFused) return multiply_add(a, b, c);
  float x[kLanes], y[kLanes], sums[kLanes];
  store(x, a);
  store(y, b);
  store(sums, c);
  for (int i = 0; i < kLanes; ++i) sums[i] = __builtin_fmaf(x[i], y[i], sums[i]);
  return load(sums);
}

// Adds one panel's weighted heads to `sums`, kHeadSums of each of kTileKeys keys, which are in
// memory since the dot products need the registers; kFirst panels write them. If kSigned,
// key_signs[r] is -1 where the scale of key r is negative.
template <int kVectors, bool kSigned, bool kFirst, class Prefetch>
inline __attribute__((always_inline)) void add_panel(const char* const* keys,
                                                     const int32_t* key_signs, int64_t steps,
                                                     const PackedRow& row, Prefetch prefetch,
                                                     float* sums) {
  I32 dots[kTileKeys][kVectors];
  unroll<kTileKeys * kVectors>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
    dots[i / kVectors][i % kVectors] = load(row.start + i % kVectors * kLanes);
  });
  constexpr int64_t kPanelStride = kVectors * kLanes * Int8Operand::kStepBytes;
  multiply_tile<Int8Operand, kTileKeys, kVectors, Int8Operand::kStepBytes>(
      dots, keys, row.panels, kPanelStride, steps, prefetch);
  unroll<kTileKeys * kSumVectors>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
    const int r = i / kSumVectors;
    F32 sum = kFirst ? zero() : load(sums + i * kLanes);
    unroll<kVectors / kSumVectors>([&](int part) CUSTOM_PYPTO_INLINE_LAMBDA {
      const int v = i % kSumVectors + part * kSumVectors;
      I32 dot = dots[r][v];
      if (kSigned) {
        const I32 sign = load(row.signs + v * kLanes) ^ broadcast_int(key_signs[r]);
        dot = (dot ^ sign) - sign;
      }
      // The maximum of integers, since the floating-point units are busier.
      const F32 positive = to_float(max(dot, broadcast_int(0)));
      sum = fused_multiply_add(positive, load(row.weights + v * kLanes), sum);
    });
    store(sums + i * kLanes, sum);
  });
}

// add_panel for `vectors`, which is at most kVectors.
template <int kVectors, bool kSigned, bool kFirst, class Prefetch>
inline __attribute__((always_inline)) void add_narrow_panel(int64_t vectors,
                                                            const char* const* keys,
                                                            const int32_t* key_signs, int64_t steps,
                                                            const PackedRow& row, Prefetch prefetch,
                                                            float* sums) {
  if constexpr (kVectors > kSumVectors) {
    if (vectors < kVectors) {
      return add_narrow_panel<kVectors - kSumVectors, kSigned, kFirst>(vectors, keys, key_signs,
                                                                       steps, row, prefetch, sums);
    }
  }
  add_panel<kVectors, kSigned, kFirst>(keys, key_signs, steps, row, prefetch, sums);
}

// Writes the kHeadSums sums of each of kTileKeys keys.
template <bool kSigned, class Prefetch>
inline __attribute__((always_inline)) void score_tile(const char* const* keys,
                                                      const int32_t* key_signs,
                                                      const RowShape& shape, PackedRow row,
                                                      Prefetch prefetch, float* sums) {
  add_narrow_panel<kPanelVectors, kSigned, true>(shape.vectors, keys, key_signs, shape.steps, row,
                                                 prefetch, sums);
  for (int64_t left = shape.vectors - kPanelVectors; left > 0; left -= kPanelVectors) {
    row.weights += kPanelVectors * kLanes;
    row.start += kPanelVectors * kLanes;
    row.signs += kPanelVectors * kLanes;
    row.panels += shape.steps * kPanelVectors * kLanes * Int8Operand::kStepBytes;
    add_narrow_panel<kPanelVectors, kSigned, false>(left, keys, key_signs, shape.steps, row,
                                                    NoPrefetch(), sums);
  }
}

// Adds the sums of two keys: in vectors of lanes / (2 kHalf) segments, the upper half of each
// segment to its lower half, a's to the lanes l with (l & kHalf) == 0, b's to the others.
template <int kHalf, int... kLane>
inline F32 add_halves(F32 a, F32 b, Indices<kLane...>) {
  const Integers x = reinterpret_cast<Integers>(a);
  const Integers y = reinterpret_cast<Integers>(b);
  const Integers low =
      choose_lanes<((kLane & kHalf) == 0 ? kLane : kLane - kHalf + kLanes)...>(x, y);
  const Integers high =
      choose_lanes<((kLane & kHalf) == 0 ? kLane + kHalf : kLane + kLanes)...>(x, y);
  return add(reinterpret_cast<F32>(low), reinterpret_cast<F32>(high));
}

// Lane i of the result is the sum of the lanes of keys[i].
template <int kHalf = kLanes / 2>
inline F32 add_lanes(F32 (&keys)[kLanes]) {
  unroll<kHalf>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
    keys[i] = add_halves<kHalf>(keys[i], keys[i + kHalf], AllLanes());
  });
  if constexpr (kHalf > 1) return add_lanes<kHalf / 2>(keys);
  return keys[0];
}

// The ranks of kLanes keys from the sums of each.
__attribute__((noinline)) void add_sums(const float* sums, const float* scales, int32_t* ranks) {
  F32 keys[kLanes];  // of each its kHeadSums sums, down to kLanes
  for (int i = 0; i < kLanes; ++i) {
    F32 parts[kSumVectors];
    for (int v = 0; v < kSumVectors; ++v) parts[v] = load(sums + i * kHeadSums + v * kLanes);
    for (int half = kSumVectors / 2; half > 0; half /= 2) {
      for (int v = 0; v < half; ++v) parts[v] = add(parts[v], parts[v + half]);
    }
    keys[i] = parts[0];
  }
  float scores[kLanes];
  store(scores, multiply(add_lanes(keys), load(scales)));
  __builtin_memcpy(ranks, scores, sizeof scores);
  rank_scores(ranks, kLanes);
}

// Whether keys are multiplied where they are. Else they are stored as they are multiplied first.
inline bool is_multiplied_in_place(const Keys& keys) {
  return kInt8RowsInPlace && keys.stride == 1 && keys.depth % Int8Operand::kDepth == 0;
}

// Whether keys are stored while the keys of the block before are multiplied.
inline bool is_stored_ahead(const Keys& keys) {
  return kInt8RowsStoredAhead && keys.stride == 1 && keys.depth % kStoredAheadLine == 0;
}

inline int64_t stored_key_bytes(const Keys& keys) {
  return int8_steps(keys.depth) * Int8Operand::kStepBytes;
}

// The scratch memory of score() for a block of kTokenBlock keys.
struct KeyBlock {
  float* sums;
  float* scales;
  int32_t* signs;  // of the scales
  // The keys as they are multiplied, and the next block's keys.
  char* stored;
  char* next_stored;

  KeyBlock(char* scratch, const Keys& keys)
      : sums(reinterpret_cast<float*>(scratch)),
        scales(sums + kTokenBlock * kHeadSums),
        signs(reinterpret_cast<int32_t*>(scales + kTokenBlock)),
        stored(scratch + align(kTokenBlock * (kHeadSums + 2) * 4)),
        next_stored(stored + stored_bytes(keys)) {}

  static int64_t bytes(const Keys& keys) {
    return align(kTokenBlock * (kHeadSums + 2) * 4) +
           (is_stored_ahead(keys) ? 2 : 1) * stored_bytes(keys);
  }

  // The next block becomes the block.
  void swap() {
    char* const next = next_stored;
    next_stored = stored;
    stored = next;
  }

 private:
  // The bytes of a block's keys, and of those that are stored past its last tile.
  static int64_t stored_bytes(const Keys& keys) {
    if (is_multiplied_in_place(keys)) return 0;
    const int64_t more = is_stored_ahead(keys) ? kPrefetchedRows / 2 : 0;
    return align((kTokenBlock + more) * stored_key_bytes(keys));
  }
};

inline int64_t score_scratch_bytes(const Keys& keys) { return KeyBlock::bytes(keys); }

// Prefetches the scales of the next `count` keys.
inline void prefetch_scales(KeyCursor& cursor, const Keys& scales, int64_t count) {
  const int64_t step = scales.token_stride * bytes_of(scales.element);
  while (count > 0) {
    const KeyCursor::Run run = cursor.next_run(count);
    const char* const last = run.first + (run.keys - 1) * step;
    for (const char* at = run.first; at < last; at += step > 64 ? step : 64) __builtin_prefetch(at);
    __builtin_prefetch(last);
    count -= run.keys;
  }
}

// Stores the first `count` keys of a block.
inline void store_keys(const Keys& keys, const char* const* at, int64_t count, char* stored) {
  for (int64_t i = 0; i < count; ++i) {
    store_int8_row(reinterpret_cast<const int8_t*>(at[i]), keys.stride, keys.depth,
                   stored + i * stored_key_bytes(keys));
  }
}

// The ranks of the first `count` keys of a block. prefetch(i) is what is done beside the tile from
// key i on. Sums are added a tile later than they could be, so that they wait for nothing, beside
// the dot products of the next.
template <bool kSigned, class Prefetch>
inline void score_tiles(const char* const* keys, const KeyBlock& block, int64_t count,
                        const RowShape& shape, const PackedRow& row, const Prefetch& prefetch,
                        int32_t* ranks) {
  int64_t added = 0;
  const auto add_until = [&](int64_t end) CUSTOM_PYPTO_INLINE_LAMBDA {
    for (; added < end; added += kLanes) {
      add_sums(block.sums + added * kHeadSums, block.scales + added, ranks + added);
    }
  };
  for (int64_t i = 0; i < count; i += kTileKeys) {
    score_tile<kSigned>(keys + i, block.signs + i, shape, row, prefetch(i),
                        block.sums + i * kHeadSums);
    add_until(i - (kLanes - 1));
  }
  add_until(count);
}

// Whether keys are multiplied in tile registers, where they are stored.
inline bool uses_tiles(const Keys& keys) {
  return kHasInt8Tiles && keys.stride == 1 && keys.depth % 64 == 0;
}

// As score_tiles, for stored keys.
template <bool kSigned>
inline void score_in_tile_registers(const char* keys, const KeyBlock& block, int64_t count,
                                    const RowShape& shape, const PackedRow& row,
                                    const char* const* next_keys, int32_t* ranks) {
  constexpr int64_t kTogether = 2 * kTileRows;
  static_assert(!kHasTiles || (kTokenBlock % kTogether == 0 && kPanelVectors % 2 == 0));
  const int64_t key_bytes = shape.steps * Int8Operand::kStepBytes;
  int32_t dots[2][kTogether][kTogether];
  for (int64_t key = 0; key < count; key += kTogether) {
    PrefetchRows prefetch(next_keys + key, key_bytes);
    const int64_t most = kTogether * ((key_bytes + 127) / 128);
    const int64_t calls = shape.steps / kTileRows * ((shape.vectors + 1) / 2);
    const int64_t each = (most + calls - 1) / calls;
    int64_t advanced = 0;
    for (int64_t v = 0; v < shape.vectors; v += 2) {
      auto& pair = dots[v / 2 % 2];
      const int64_t panel = v / kPanelVectors * kPanelVectors;
      const int64_t left = shape.vectors - panel;
      const int64_t width = left < kPanelVectors ? left : kPanelVectors;
      const int64_t parts = v + 1 < shape.vectors ? 2 : 1;
      multiply_tiles(
          keys + key * key_bytes, key_bytes,
          row.panels + (panel * shape.steps + v % kPanelVectors) * kLanes * Int8Operand::kStepBytes,
          width * kLanes * Int8Operand::kStepBytes, shape.steps, pair[0], int64_t{sizeof pair[0]},
          parts == 2, false, [&]() CUSTOM_PYPTO_INLINE_LAMBDA {
            for (int64_t i = 0; i < each && advanced < most; ++i, ++advanced) prefetch.advance();
          });
      for (int64_t r = 0; r < kTogether; ++r) {
        float* const sums = block.sums + (key + r) * kHeadSums;
        F32 sum = v == 0 ? zero() : load(sums);
        for (int64_t part = 0; part < parts; ++part) {
          const int64_t at = (v + part) * kLanes;
          I32 dot = load(pair[r] + part * kLanes) + load(row.start + at);
          if (kSigned) {
            const I32 sign = load(row.signs + at) ^ broadcast_int(block.signs[key + r]);
            dot = (dot ^ sign) - sign;
          }
          const F32 positive = to_float(max(dot, broadcast_int(0)));
          sum = fused_multiply_add(positive, load(row.weights + at), sum);
        }
        store(sums, sum);
      }
    }
    for (int64_t i = key; i < key + kTogether; i += kLanes) {
      add_sums(block.sums + i * kHeadSums, block.scales + i, ranks + i);
    }
  }
}

// Distance of the prefetch from the keys that are stored.
inline constexpr int64_t kStoredPrefetchAhead = 2 * kTileKeys;
static_assert(kStoredPrefetchAhead <= kPrefetchAhead, "KeyAddresses has that many");

inline void score(const ScoreRange& range) {
  const Keys& keys = *range.keys;
  const RowShape shape(keys, range.heads);
  const int64_t row_bytes = shape.bytes();
  // The bytes that a key spans.
  const int64_t key_bytes = keys.depth * (keys.stride > 1 ? keys.stride : 1);
  const bool in_place = is_multiplied_in_place(keys);
  const bool in_tiles = uses_tiles(keys);
  const bool stored_ahead = !in_tiles && is_stored_ahead(keys);
  [[maybe_unused]] const Tiles tiles{};
  KeyBlock scratch(range.scratch, keys);
  KeyAddresses<kTokenBlock, kTokenBlock + kPrefetchAhead + kPrefetchedRows> addresses(
      keys, range.first, range.last);
  const char* stored_at[kTokenBlock];
  KeyCursor scale_cursor(*range.scales, range.first);
  KeyCursor next_scale_cursor(*range.scales, range.first + kTokenBlock);
  KeyCursor tlb_cursor(keys, range.first);
  for (int64_t block = range.first; block < range.last; block += kTokenBlock) {
    const int64_t left = range.last - block;
    if ((block - range.first) % kTlbBatchKeys == 0) {
      tlb_cursor.warm_tlb(left < kTlbBatchKeys ? left : kTlbBatchKeys);
    }
    const int64_t count = left < kTokenBlock ? left : kTokenBlock;
    if (!in_place) {
      if (!stored_ahead || block == range.first) {
        store_keys(keys, addresses.block(), count, scratch.stored);
      }
      for (int64_t i = 0; i < kTokenBlock; ++i) {
        stored_at[i] = scratch.stored + i * stored_key_bytes(keys);
      }
    }
    const char* const* at = in_place ? addresses.block() : stored_at;
    const char* const* next_at = addresses.next_block();
    read_scales(scale_cursor, *range.scales, count, scratch.scales);
    split_signs(scratch.scales, count, scratch.signs);
    // The last tile computes results past the last key, which nobody reads.
    for (int64_t i = count; i < kTokenBlock; ++i) scratch.signs[i] = 0;
    const bool has_signs = is_any_set(scratch.signs, count);
    const int64_t later = left - count < kTokenBlock ? left - count : kTokenBlock;
    prefetch_scales(next_scale_cursor, *range.scales, later);
    for (int64_t r = 0; r < range.rows; ++r) {
      const int64_t seen = range.visible[r] - block < count ? range.visible[r] - block : count;
      const PackedRow row = shape.row(range.packed + r * row_bytes);
      int32_t* ranks = range.ranks + r * range.ranks_stride + block;
      const bool is_signed = has_signs || is_any_set(row.signs, range.heads);
      const auto score_beside = [&](const auto& prefetch) {
        if (is_signed) {
          score_tiles<true>(at, scratch, seen, shape, row, prefetch, ranks);
        } else {
          score_tiles<false>(at, scratch, seen, shape, row, prefetch, ranks);
        }
      };
      if constexpr (kHasInt8Tiles) {
        if (in_tiles) {
          const auto score_all =
              is_signed ? &score_in_tile_registers<true> : &score_in_tile_registers<false>;
          score_all(scratch.stored, scratch, seen, shape, row, next_at, ranks);
          continue;
        }
      }
      if (stored_ahead && r == range.rows - 1) {  // which sees the whole block
        score_beside([&](int64_t i) {
          return StoreInt8Rows<kStoredPrefetchAhead>(
              next_at + i, key_bytes, scratch.next_stored + i * stored_key_bytes(keys));
        });
      } else {
        score_beside([&](int64_t i) { return PrefetchRows(next_at + i, key_bytes); });
      }
    }
    addresses.advance();
    if (stored_ahead) scratch.swap();
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
