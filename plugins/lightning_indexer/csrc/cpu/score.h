// score = sum over heads of weight * max(query head . key, 0), fused in registers, as ranks.
//
// One tile is kTileKeys keys against all heads: the keys are read in place and broadcast, the heads
// are the lanes. No dot product is stored.
//
// Keys and queries of e4m3 are multiplied as bf16 or fp32, which hold them exactly. Their scales
// are applied as in int8_score.h: a negative one negates the numbers, its magnitude multiplies the
// head's weight, or the key's score.
#pragma once

#include <custom_pypto_blocks/cpu/tile.h>

#include "e4m3.h"
#include "indexer_kernels.h"
#include "key_cursor.h"
#include "rank.h"
#include "rows.h"
#include "scales.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_lightning_indexer::kAlignment;
using custom_pypto_lightning_indexer::Keys;
using custom_pypto_lightning_indexer::kTokenBlock;
using custom_pypto_lightning_indexer::Query;
using custom_pypto_lightning_indexer::ScoreRange;

// Keys that a row is scored against before the next row: they stay in the L1 cache beside a packed
// row. A packed fp32 row fills more than half of it.
template <class Operand>
inline constexpr int64_t kKeysPerBlock = Operand::kDepth > 1 ? kTokenBlock : kTokenBlock / 4;
// The number that Operand's steps consist of.
template <int64_t kDepth>
struct NumberOf {
  using Type = float;
};
template <>
struct NumberOf<2> {
  using Type = Bf16;
};
static_assert(kTokenBlock / 4 % kTileKeys == 0);

// Whether keys are multiplied as pairs of bf16: bf16 is read in place, e4m3 is widened first.
inline bool uses_pairs(const Keys& keys) {
  return kHasBf16Dot && keys.depth % 2 == 0 &&
         ((keys.element == Element::bf16 && keys.stride == 1) || keys.element == Element::e4m3);
}

// Whether these pairs are multiplied in tile registers.
inline bool uses_tiles(const Keys& keys) {
  return kHasBf16Tiles && uses_pairs(keys) && keys.depth % 32 == 0;
}

// Whether keys are multiplied as fp32, read in place. Else they are widened first.
inline bool is_plain_fp32(const Keys& keys) {
  return keys.element == Element::fp32 && keys.stride == 1;
}

// A packed row: weights, the lane mask of the last vector, then the panels of kTileVectors vectors
// of heads (the last panel may be narrower). Behind it is room for e4m3 heads as bf16, which `pack`
// needs.
struct PackedRow {
  const float* weights;
  const float* last_mask;
  const char* panels;
};

struct RowShape {
  int64_t vectors;  // of heads
  int64_t steps;

  int64_t widened;  // bytes

  RowShape(const Keys& keys, int64_t heads)
      : vectors((heads + kLanes - 1) / kLanes),
        steps(uses_pairs(keys) ? keys.depth / 2 : keys.depth),
        widened(keys.element == Element::e4m3 ? align(heads * keys.depth * 2) : 0) {}

  int64_t lanes() const { return vectors * kLanes; }
  int64_t panels() const { return (vectors + kTileVectors - 1) / kTileVectors; }
  int64_t panels_at() const { return align((lanes() + kLanes) * 4); }
  int64_t widened_at() const { return panels_at() + align(steps * lanes() * 4); }
  int64_t bytes() const { return widened_at() + widened; }
  PackedRow row(const char* packed) const {
    const float* weights = reinterpret_cast<const float*>(packed);
    return {weights, weights + lanes(), packed + panels_at()};
  }
};

inline int64_t packed_row_bytes(const Keys& keys, int64_t heads) {
  return RowShape(keys, heads).bytes();
}

template <class Number>
inline void pack_widened(const Query& query, int64_t first_head, int64_t heads, int64_t lanes,
                         int64_t depth, char* panel) {
  const Number* data = reinterpret_cast<const Number*>(query.data) + first_head * query.head_stride;
  pack_fp32([&](int64_t head,
                int64_t k) { return to_float(data[head * query.head_stride + k * query.stride]); },
            heads, lanes, depth, panel);
}

inline void pack_panel(const Keys& keys, const Query& query, int64_t first_head, int64_t heads,
                       int64_t lanes, char* panel) {
  if (uses_pairs(keys)) {
    const Bf16* data = reinterpret_cast<const Bf16*>(query.data) + first_head * query.head_stride;
    if (query.stride == 1) {
      return pack_rows(reinterpret_cast<const char*>(data), query.head_stride * 2, heads, lanes,
                       keys.depth / 2, panel);
    }
    pack_bf16_pairs(
        [&](int64_t head, int64_t k) { return data[head * query.head_stride + k * query.stride]; },
        heads, lanes, keys.depth, panel);
    return;
  }
  if (query.element == Element::fp32 && query.stride == 1) {
    return pack_rows(query.data + first_head * query.head_stride * 4, query.head_stride * 4, heads,
                     lanes, keys.depth, panel);
  }
  switch (query.element) {
    case Element::fp32:
      return pack_widened<float>(query, first_head, heads, lanes, keys.depth, panel);
    case Element::bf16:
      return pack_widened<Bf16>(query, first_head, heads, lanes, keys.depth, panel);
    case Element::fp16:
      return pack_widened<Fp16>(query, first_head, heads, lanes, keys.depth, panel);
    case Element::int8:
    case Element::e4m3:
      return;  // int8 has kernels of its own, e4m3 is bf16 by now
  }
}

// Widens e4m3 heads to `rows`, and multiplies their weights by their scales. Returns the query with
// these heads.
inline Query widen_heads(const Query& query, int64_t depth, float* weights, Bf16* rows) {
  for (int64_t h = 0; h < query.heads; ++h) {
    float scale = 0.0f;
    widen_row(query.scales + h * query.scale_stride * bytes_of(query.scale_element),
              query.scale_element, 1, 1, &scale);
    int32_t sign;
    split_signs(&scale, 1, &sign);
    weights[h] *= scale;
    widen_e4m3(query.data + h * query.head_stride, query.stride, depth, sign != 0,
               rows + h * depth);
  }
  Query widened = query;
  widened.data = reinterpret_cast<const char*>(rows);
  widened.head_stride = depth;
  widened.stride = 1;
  widened.element = Element::bf16;
  return widened;
}

inline void pack(const Keys& keys, const Query& given, char* packed) {
  const RowShape shape(keys, given.heads);
  float* weights = reinterpret_cast<float*>(packed);
  widen_row(given.weights, given.weight_element, given.weight_stride, given.heads, weights);
  const Query query = given.element != Element::e4m3
                          ? given
                          : widen_heads(given, keys.depth, weights,
                                        reinterpret_cast<Bf16*>(packed + shape.widened_at()));
  for (int64_t h = query.heads; h < shape.lanes(); ++h) weights[h] = 0.0f;
  float* mask = weights + shape.lanes();
  for (int64_t i = 0; i < kLanes; ++i) {
    const bool real = shape.lanes() - kLanes + i < query.heads;
    mask[i] = float_from_bits(real ? 0xffffffffu : 0u);
  }
  char* panel = packed + shape.panels_at();
  constexpr int64_t kPanelLanes = int64_t{kTileVectors} * kLanes;
  for (int64_t first = 0; first < shape.lanes(); first += kPanelLanes) {
    const int64_t left = shape.lanes() - first;
    const int64_t lanes = left < kPanelLanes ? left : kPanelLanes;
    const int64_t heads = query.heads - first < lanes ? query.heads - first : lanes;
    pack_panel(keys, query, first, heads, lanes, panel);
    panel += shape.steps * lanes * 4;
  }
}

// Adds one panel's weighted heads to the scores of a tile's keys, lane by lane.
template <class Operand, int kVectors, class Prefetch>
inline __attribute__((always_inline)) void add_panel(const char* const* keys, const char* panel,
                                                     int64_t steps, const float* weights,
                                                     F32 last_mask, Prefetch prefetch,
                                                     F32 (&scores)[kTileKeys]) {
  F32 dots[kTileKeys][kVectors];
  unroll<kTileKeys * kVectors>(
      [&](int i) CUSTOM_PYPTO_INLINE_LAMBDA { dots[i / kVectors][i % kVectors] = zero(); });
  constexpr int64_t kPanelStride = int64_t{kVectors} * kLanes * 4;
  multiply_tile<Operand, kTileKeys, kVectors, Operand::kStepBytes>(dots, keys, panel, kPanelStride,
                                                                   steps, prefetch);
  unroll<kTileKeys * kVectors>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
    const int r = i / kVectors;
    const int v = i % kVectors;
    F32 positive = max(zero(), dots[r][v]);  // NaN stays
    // A padding lane is 0 * key, which is NaN for an infinite key.
    if (v == kVectors - 1) positive = bitwise_and(positive, last_mask);
    scores[r] = multiply_add(positive, load(weights + v * kLanes), scores[r]);
  });
}

// add_panel for `vectors`, which is at most kVectors.
template <class Operand, int kVectors, class Prefetch>
inline __attribute__((always_inline)) void add_narrow_panel(
    int64_t vectors, const char* const* keys, const char* panel, int64_t steps,
    const float* weights, F32 last_mask, Prefetch prefetch, F32 (&scores)[kTileKeys]) {
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) {
      return add_narrow_panel<Operand, kVectors - 1>(vectors, keys, panel, steps, weights,
                                                     last_mask, prefetch, scores);
    }
  }
  add_panel<Operand, kVectors>(keys, panel, steps, weights, last_mask, prefetch, scores);
}

// Scores of the first `count` keys of a block, as their bits. All keys are multiplied by a panel
// before the next one, so that it stays in the L1 cache; between panels their lanes are in memory.
// prefetch(i) is what is done beside the tile from key i on.
template <class Operand, class Prefetch>
inline void score_keys(const char* const* keys, int64_t count, const RowShape& shape,
                       const PackedRow& row, Prefetch& prefetch, int32_t* scores_out) {
  const F32 every_lane = broadcast(float_from_bits(0xffffffffu));
  float lanes[kKeysPerBlock<Operand>][kLanes];
  F32 scores[kTileKeys];
  const auto start = [&](int64_t key, bool is_first) CUSTOM_PYPTO_INLINE_LAMBDA {
    unroll<kTileKeys>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
      scores[r] = is_first ? zero() : load(lanes[key + r]);
    });
  };
  const char* panel = row.panels;
  const float* weights = row.weights;
  int64_t vectors = shape.vectors;
  for (; vectors > kTileVectors; vectors -= kTileVectors) {
    for (int64_t i = 0; i < count; i += kTileKeys) {
      start(i, vectors == shape.vectors);
      add_panel<Operand, kTileVectors>(keys + i, panel, shape.steps, weights, every_lane,
                                       prefetch(i), scores);
      unroll<kTileKeys>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA { store(lanes[i + r], scores[r]); });
    }
    panel += shape.steps * kTileVectors * kLanes * 4;
    weights += kTileVectors * kLanes;
  }
  for (int64_t i = 0; i < count; i += kTileKeys) {
    start(i, vectors == shape.vectors);
    add_narrow_panel<Operand, kTileVectors>(vectors, keys + i, panel, shape.steps, weights,
                                            load(row.last_mask), prefetch(i), scores);
    constexpr int kLast = kTileKeys - 1;
    unroll<(kTileKeys + 3) / 4>([&](int j) CUSTOM_PYPTO_INLINE_LAMBDA {
      const int r = 4 * j;
      float four[4];
      reduce_add4(scores[r], scores[r + 1], scores[r + 2 < kLast ? r + 2 : kLast],
                  scores[r + 3 < kLast ? r + 3 : kLast], four);
      __builtin_memcpy(scores_out + i + r, four,
                       (kTileKeys - r < 4 ? kTileKeys - r : 4) * sizeof *four);
    });
  }
}

// Prefetches `count` keys, some lines of them before each tile, of which there are `tiles`: for
// tiles so small that instructions within them would take time.
class PrefetchLines {
 public:
  PrefetchLines(const char* const* keys, int64_t count, int64_t key_bytes, int64_t tiles)
      : next_(keys), key_bytes_(key_bytes) {
    const int64_t lines = count * ((key_bytes + kLine - 1) / kLine);
    lines_ = (lines + tiles - 1) / tiles;
    end_ = keys + count;
  }

  NoPrefetch operator()(int64_t) {
    for (int64_t line = 0; line < lines_ && next_ != end_; ++line) {
      __builtin_prefetch(*next_ + offset_);
      offset_ += kLine;
      if (offset_ < key_bytes_) continue;
      offset_ = 0;
      ++next_;
    }
    return {};
  }

 private:
  static constexpr int64_t kLine = 64;

  const char* const* next_;
  const char* const* end_;
  int64_t key_bytes_;
  int64_t lines_;
  int64_t offset_ = 0;
};

// As score_keys, for keys one after the other. prefetch(0) is called often.
template <class Operand>
inline void score_keys_in_tiles(const char* keys, int64_t count, const RowShape& shape,
                                const PackedRow& row, PrefetchLines& prefetch,
                                int32_t* scores_out) {
  constexpr int64_t kTogether = 2 * kTileRows;
  static_assert(!kHasTiles || (kTokenBlock % kTogether == 0 && kTileVectors % 2 == 0));
  const F32 every_lane = broadcast(float_from_bits(0xffffffffu));
  const int64_t key_bytes = shape.steps * Operand::kStepBytes;
  float dots[2][kTogether][kTogether];
  float lanes[kTogether][kLanes];
  for (int64_t key = 0; key < count; key += kTogether) {
    for (int64_t v = 0; v < shape.vectors; v += 2) {
      auto& pair = dots[v / 2 % 2];
      const int64_t panel = v / kTileVectors * kTileVectors;
      const int64_t width =
          shape.vectors - panel < kTileVectors ? shape.vectors - panel : kTileVectors;
      const bool is_wide = v + 1 < shape.vectors;
      const char* const heads = row.panels + (panel * shape.steps + v % kTileVectors) * kLanes * 4;
      multiply_tiles(keys + key * key_bytes, key_bytes, heads, width * kLanes * 4, shape.steps,
                     pair[0], sizeof pair[0], is_wide, false,
                     [&]() CUSTOM_PYPTO_INLINE_LAMBDA { prefetch(0); });
      const F32 weight = load(row.weights + v * kLanes);
      const F32 next_weight = is_wide ? load(row.weights + (v + 1) * kLanes) : zero();
      const F32 last_mask = v + 2 < shape.vectors ? every_lane : load(row.last_mask);
      for (int64_t r = 0; r < kTogether; ++r) {
        F32 score = v == 0 ? zero() : load(lanes[r]);
        // As add_panel.
        F32 positive = max(zero(), load(pair[r]));
        if (!is_wide) positive = bitwise_and(positive, last_mask);
        score = multiply_add(positive, weight, score);
        if (is_wide) {
          positive = bitwise_and(max(zero(), load(pair[r] + kLanes)), last_mask);
          score = multiply_add(positive, next_weight, score);
        }
        store(lanes[r], score);
      }
    }
    for (int64_t r = 0; r < kTogether; r += 4) {
      float four[4];
      reduce_add4(load(lanes[r]), load(lanes[r + 1]), load(lanes[r + 2]), load(lanes[r + 3]), four);
      __builtin_memcpy(scores_out + key + r, four, sizeof four);
    }
  }
}

// The keys of a block as they are multiplied: in place.
struct KeysInPlace {
  using Prefetch = PrefetchRows;

  explicit KeysInPlace(const ScoreRange&) {}
  // Returns the addresses of the next `count` keys, which are at `at`.
  const char* const* load(const char* const* at, int64_t) { return at; }
  // Multiplies scores of the block's first keys, given as their bits, by what else keys have.
  void scale(int32_t*, int64_t) const {}
};

// The same for keys that are widened first, to Operand's numbers. Past the last key, the last key's
// address is repeated.
template <class Operand>
class WidenedKeys {
 public:
  using Prefetch = PrefetchRows;

  explicit WidenedKeys(const ScoreRange& range) : keys_(*range.keys), memory_(range.scratch) {}

  static int64_t bytes(const Keys& keys) {
    return align(kKeysPerBlock<Operand> * stored_bytes(keys));
  }
  const char* const* load(const char* const* at, int64_t count) {
    store(count, [&](int64_t i, char* to) {
      widen_row(at[i], keys_.element, keys_.stride, keys_.depth, reinterpret_cast<float*>(to));
    });
    return at_;
  }
  void scale(int32_t*, int64_t) const {}

 protected:
  // Stores `count` keys by store_key(i, to).
  template <class StoreKey>
  void store(int64_t count, const StoreKey& store_key) {
    for (int64_t i = 0; i < kKeysPerBlock<Operand>; ++i) {
      char* const to = memory_ + i * stored_bytes(keys_);
      at_[i] = i < count ? to : at_[i - 1];
      if (i < count) store_key(i, to);
    }
  }

  const Keys& keys_;
  const char* at_[kKeysPerBlock<Operand>];

 private:
  static int64_t stored_bytes(const Keys& keys) {
    return keys.depth * (Operand::kStepBytes / Operand::kDepth);
  }

  char* memory_;
};

// The same for keys of Operand's numbers, which tiles want one after the other.
template <class Operand>
struct CopiedKeys : WidenedKeys<Operand> {
  using WidenedKeys<Operand>::WidenedKeys;
  const char* const* load(const char* const* at, int64_t count) {
    this->store(count, [&](int64_t i, char* to) {
      __builtin_memcpy(to, at[i], static_cast<size_t>(this->keys_.depth) * sizeof(Bf16));
    });
    return this->at_;
  }
};

// The same for e4m3 keys, which have scales.
template <class Operand>
class E4m3Keys : public WidenedKeys<Operand> {
  using Widened = WidenedKeys<Operand>;

 public:
  // A type of its own: the tiles of pairs of bf16 in place have one caller, and are inlined there.
  struct Prefetch : PrefetchRows {
    using PrefetchRows::PrefetchRows;
  };

  explicit E4m3Keys(const ScoreRange& range)
      : Widened(range), scales_(*range.scales), cursor_(scales_, range.first) {}

  const char* const* load(const char* const* at, int64_t count) {
    read_scales(cursor_, scales_, count, magnitudes_);
    split_signs(magnitudes_, count, signs_);
    this->store(count, [&](int64_t i, char* to) {
      using Number = typename NumberOf<Operand::kDepth>::Type;
      widen_e4m3(at[i], this->keys_.stride, this->keys_.depth, signs_[i] != 0,
                 reinterpret_cast<Number*>(to));
    });
    return this->at_;
  }
  void scale(int32_t* scores, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      const float score = float_from_bits(static_cast<uint32_t>(scores[i])) * magnitudes_[i];
      scores[i] = static_cast<int32_t>(float_bits(score));
    }
  }

 private:
  const Keys& scales_;
  KeyCursor cursor_;
  float magnitudes_[kKeysPerBlock<Operand>] = {};
  int32_t signs_[kKeysPerBlock<Operand>];
};

inline int64_t score_scratch_bytes(const Keys& keys) {
#ifdef CUSTOM_PYPTO_CPU_BF16_DOT
  const bool is_e4m3 = keys.element == Element::e4m3;
  if (uses_pairs(keys))
    return is_e4m3 || uses_tiles(keys) ? WidenedKeys<Bf16PairOperand>::bytes(keys) : 0;
#endif
  return is_plain_fp32(keys) ? 0 : WidenedKeys<Fp32Operand>::bytes(keys);
}

template <class Operand, class KeyRows, bool kInTiles = false>
inline void score_blocks(const ScoreRange& range) {
  constexpr int64_t kKeys = kKeysPerBlock<Operand>;
  const Keys& keys = *range.keys;
  const RowShape shape(keys, range.heads);
  const int64_t row_bytes = shape.bytes();
  // The bytes that a key spans.
  const int64_t key_bytes =
      keys.depth * (keys.stride > 1 ? keys.stride : 1) * bytes_of(keys.element);
  // PrefetchRows asks for half of the bytes that are multiplied. Keys of 8 bits may span a quarter.
  const int64_t half_bytes = shape.steps * Operand::kStepBytes / 2;
  const int64_t prefetch_bytes = key_bytes > half_bytes ? key_bytes : half_bytes;
  // No more of keys with a stride than they have numbers.
  const int64_t most = shape.steps * Operand::kStepBytes;
  const int64_t line_bytes = key_bytes < most ? key_bytes : most;
  KeyRows key_rows(range);
  constexpr int64_t kAhead = kInTiles ? kKeys : kPrefetchAhead + kPrefetchedRows;
  KeyAddresses<kKeys, kAhead> addresses(keys, range.first, range.last);
  KeyCursor tlb_cursor(keys, range.first);
  for (int64_t block = range.first; block < range.last; block += kKeys) {
    const int64_t left = range.last - block;
    if ((block - range.first) % kTlbBatchKeys == 0) {
      tlb_cursor.warm_tlb(left < kTlbBatchKeys ? left : kTlbBatchKeys);
    }
    const char* const* at = addresses.block();
    const int64_t present = left < kKeys ? left : kKeys;
    const char* const* tiles = key_rows.load(at, present);
    bool is_prefetched = false;
    for (int64_t r = 0; r < range.rows; ++r) {
      const int64_t seen = range.visible[r] - block;
      const int64_t count = seen < present ? seen : present;
      const PackedRow row = shape.row(range.packed + r * row_bytes);
      int32_t* ranks = range.ranks + r * range.ranks_stride + block;
      if constexpr (kInTiles) {
        PrefetchLines prefetch(at + kKeys, count > 0 && !is_prefetched ? kKeys : 0, line_bytes,
                               kKeys / 32 * ((shape.vectors + 1) / 2) * shape.steps / kTileRows);
        is_prefetched = is_prefetched || count > 0;
        score_keys_in_tiles<Operand>(tiles[0], count, shape, row, prefetch, ranks);
      } else if constexpr (kTileVectors > 2) {
        const auto prefetch = [&](int64_t i) CUSTOM_PYPTO_INLINE_LAMBDA {
          return typename KeyRows::Prefetch(at + i + kPrefetchAhead, prefetch_bytes);
        };
        score_keys<Operand>(tiles, count, shape, row, prefetch, ranks);
      } else {
        PrefetchLines prefetch(at + kKeys, kKeys, line_bytes, kKeys / kTileKeys * shape.panels());
        score_keys<Operand>(tiles, count, shape, row, prefetch, ranks);
      }
      key_rows.scale(ranks, count);
      rank_scores(ranks, count);
    }
    addresses.advance();
  }
}

inline void score(const ScoreRange& range) {
  const bool is_e4m3 = range.keys->element == Element::e4m3;
#ifdef CUSTOM_PYPTO_CPU_BF16_DOT
  using Pair = Bf16PairOperand;
  if (uses_tiles(*range.keys)) {
    [[maybe_unused]] const Tiles registers{};
    if (is_e4m3) return score_blocks<Pair, E4m3Keys<Pair>, kHasBf16Tiles>(range);
    return score_blocks<Pair, CopiedKeys<Pair>, kHasBf16Tiles>(range);
  }
  if (uses_pairs(*range.keys)) {
    if (is_e4m3) return score_blocks<Pair, E4m3Keys<Pair>>(range);
    return score_blocks<Pair, KeysInPlace>(range);
  }
#endif
  if (is_e4m3) return score_blocks<Fp32Operand, E4m3Keys<Fp32Operand>>(range);
  if (is_plain_fp32(*range.keys)) return score_blocks<Fp32Operand, KeysInPlace>(range);
  score_blocks<Fp32Operand, WidenedKeys<Fp32Operand>>(range);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
