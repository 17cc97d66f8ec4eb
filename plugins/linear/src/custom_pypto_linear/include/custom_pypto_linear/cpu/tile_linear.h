// Products with weights of linear layers: kFastLinear. Where the processor has tiles, rows of bf16
// are multiplied in them, by weights of bf16 and by integers, which are numbers of bf16. The sum of
// a group's products, from the first to the last, is multiplied by the group's scale.
//
// A result has the same bits whatever weights and rows share its tiles. Calls of fewer than
// kLeastTileRows rows use no tiles, and so sum in another order.
#pragma once

#include <custom_pypto_blocks/cpu/linear.h>
#include <custom_pypto_blocks/cpu/operands.h>

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

template <class Row, class Weight = Row>
inline constexpr LinearKernel kFastLinear = kLinear<Row, Row, Weight>;

#if defined(CUSTOM_PYPTO_CPU_TILES) && defined(CUSTOM_PYPTO_CPU_BF16_DOT)

// The largest offset that tiles take. int8 plus it is a number of bf16; the tables of Int4 end
// there.
template <class Weight>
inline constexpr int kMostOffset = 128;
template <>
inline constexpr int kMostOffset<Int4> = 16;

// For each offset, what 4 bits stand for. The fifth bit of an index changes nothing.
struct Int4Tables {
  alignas(64) uint16_t bits[2 * kMostOffset<Int4> + 1][32];
};
constexpr uint16_t bf16_bits(int x) {
  if (x == 0) return 0;
  const int magnitude = x < 0 ? -x : x;
  int exponent = 0;
  while (magnitude >> exponent > 1) ++exponent;
  return static_cast<uint16_t>((x < 0) << 15 | (127 + exponent) << 7 |
                               (magnitude << 7 >> exponent & 127));
}
constexpr Int4Tables make_int4_tables() {
  Int4Tables tables = {};
  for (int i = 0; i <= 2 * kMostOffset<Int4>; ++i) {
    for (int bits = 0; bits < 32; ++bits) {
      const int integer = (bits & 7) - (bits & 8);
      tables.bits[i][bits] = bf16_bits(integer + i - kMostOffset<Int4>);
    }
  }
  return tables;
}
inline constexpr Int4Tables kInt4Tables = make_int4_tables();

// 32 weights plus an offset as numbers of bf16, and 32 numbers of a row in the same order.
template <class Weight>
struct Widened;
template <>
struct Widened<Bf16> {
  using Offset = float;
  template <bool kHasOffset>
  static Bf16Pairs weights(const char* p, Offset) {
    return load_pairs(p);
  }
  static Bf16Pairs row(const Bf16* numbers) { return _mm512_loadu_si512(numbers); }
};
template <>
struct Widened<int8_t> {
  using Offset = float;
  static void store_offsets(Offset* to, F32 x) { store(to, x); }
  template <bool kHasOffset>
  static Bf16Pairs weights(const char* p, Offset offset) {
    F32 first = load(reinterpret_cast<const int8_t*>(p));
    F32 second = load(reinterpret_cast<const int8_t*>(p + kLanes));
    if constexpr (kHasOffset) {
      first = add(first, broadcast(offset));
      second = add(second, broadcast(offset));
    }
    // Their lower halves are zeros.
    return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(first), 16),
                           _mm512_castps_si512(second));
  }
  static Bf16Pairs row(const Bf16* numbers) { return pair_up(numbers, numbers + kLanes); }
};
template <>
struct Widened<Int4> {
  using Offset = int32_t;
  static void store_offsets(Offset* to, F32 x) { _mm512_storeu_si512(to, _mm512_cvtps_epi32(x)); }
  template <bool kHasOffset>
  static Bf16Pairs weights(const char* p, Offset offset) {
    // Of four copies, the i-th gives the numbers i, 4 + i, 8 + i, ...
    const __m512i shifts =
        _mm512_setr_epi64(0, 0, 0x0004000400040004, 0x0004000400040004, 0x0008000800080008,
                          0x0008000800080008, 0x000c000c000c000c, 0x000c000c000c000c);
    const __m512i copies =
        _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const Offset table = kMostOffset<Int4> + (kHasOffset ? offset : 0);
    return _mm512_permutexvar_epi16(_mm512_srlv_epi16(copies, shifts),
                                    _mm512_load_si512(kInt4Tables.bits[table]));
  }
  static Bf16Pairs row(const Bf16* numbers) {
    alignas(64) static constexpr uint16_t kOrder[32] = {0,  4,  8,  12, 16, 20, 24, 28, 1,  5,  9,
                                                        13, 17, 21, 25, 29, 2,  6,  10, 14, 18, 22,
                                                        26, 30, 3,  7,  11, 15, 19, 23, 27, 31};
    return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), _mm512_loadu_si512(numbers));
  }
};

// kLanes numbers, with zeros behind the first `count`.
inline F32 load_first(const Bf16* p, int64_t count) {
  const auto mask = static_cast<__mmask16>(count < kLanes ? (1 << count) - 1 : 0xffff);
  return first_of(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p)));
}

// Products of fewer rows take less time without tiles.
inline constexpr int64_t kLeastTileRows = 4;

template <class Weight>
class TileLinear {
 public:
  // The rows, and the columns, that are multiplied together.
  static constexpr int64_t kBlock = 2 * kTileRows;

  static int64_t scratch_bytes(const LinearTask& task) {
    TileLinear counted(task, nullptr);
    return counted.bytes_;
  }

  static void run(const LinearTask& task) {
    const Tiles tiles;
    TileLinear product(task, task.scratch);
    product.load_rows();
    product.next_ = product.widening(task.first, 0, 0);
    for (int64_t column = task.first; column < task.last; column += kBlock) {
      if constexpr (kIsScaled<Weight>) {
        if (task.offset != nullptr) {
          product.template multiply<true>(column);
          continue;
        }
      }
      product.template multiply<false>(column);
    }
  }

  // Whether a product has enough rows, and only integer offsets up to kMostOffset.
  static bool takes(const LinearTask& task) {
    if (task.count < kLeastTileRows || task.depth == 0) return false;
    if (!kIsScaled<Weight> || task.offset == nullptr) return true;
    const int64_t groups = divide_up(task.depth, task.group);
    const __m512 most = broadcast(kMostOffset<Weight>);
    __mmask16 others = 0;
    for (int64_t group = 0; group < groups; ++group) {
      const Bf16* const offsets = static_cast<const Bf16*>(task.offset) + group * task.scale_stride;
      for (int64_t c = task.first; c < task.last; c += kLanes) {
        const F32 x = load_first(offsets + c, task.last - c);
        others |= _mm512_cmp_ps_mask(round(x), x, _CMP_NEQ_UQ) |
                  _mm512_cmp_ps_mask(_mm512_abs_ps(x), most, _CMP_NLE_UQ);
      }
    }
    return others == 0;
  }

 private:
  // Numbers that are widened at once.
  static constexpr int64_t kUnit = 2 * kTileRows;
  // The numbers of each weight that are multiplied at once: kBlock weights fit the L1 cache.
  static constexpr int64_t kChunk = 128;
  // Bytes of kUnit numbers of kBlock weights.
  static constexpr int64_t kTileBytes = kBlock * kUnit * 2;
  static constexpr int64_t bytes_of(int64_t weights) {
    return weights * static_cast<int64_t>(sizeof(Weight)) / kInByte<Weight>;
  }

  TileLinear(const LinearTask& task, char* scratch)
      : task_(task),
        group_(kIsScaled<Weight> ? task.group : task.depth),
        groups_(divide_up(task.depth, group_)),
        units_(divide_up(task.depth, kUnit)),
        row_bytes_(bytes_of(task.depth)) {
    // The number of rows, not of blocks, counts: callers take the bytes of one row more.
    const int64_t rows = task.count + kBlock - 1;
    Arena arena(scratch);
    weights_ = arena.allocate(2 * kBlock * kChunk * 2);
    rows_ = arena.allocate(rows * units_ * kUnit * 2);
    products_ = arena.allocate<float>(rows * kBlock * 4);
    sums_ = arena.allocate<float>(rows * kBlock * 4);
    scales_ = arena.allocate<float>(kBlock * groups_ * 4);
    bytes_ = arena.used();
  }

  // Up to kUnit numbers, with zeros behind them.
  static F32 load_unit(const Bf16* numbers, int64_t count) {
    if (count >= kUnit) return _mm512_castsi512_ps(Widened<Weight>::row(numbers));
    Bf16 last[kUnit] = {};
    __builtin_memcpy(last, numbers, static_cast<size_t>(count) * 2);
    return _mm512_castsi512_ps(Widened<Weight>::row(last));
  }

  // [block][pair of numbers along k][row]
  void load_rows() {
    for (int64_t row = 0; row < task_.count; row += kBlock) {
      float* to = reinterpret_cast<float*>(rows_) + row * units_ * kTileRows;
      for (int64_t k = 0; k < task_.depth; k += kUnit, to += kTileRows * kBlock) {
        for (int64_t r = 0; r < kBlock && row + r < task_.count; r += kTileRows) {
          const int64_t rows = task_.count - row - r;
          const Bf16* const from =
              static_cast<const Bf16*>(task_.rows) + (row + r) * task_.depth + k;
          F32 pairs[kTileRows];
          unroll<kTileRows>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
            pairs[i] = i < rows ? load_unit(from + i * task_.depth, task_.depth - k) : zero();
          });
          transpose(pairs);
          unroll<kTileRows>([&](int pair) CUSTOM_PYPTO_INLINE_LAMBDA {
            store(to + pair * kBlock + r, pairs[pair]);
          });
        }
      }
    }
  }

  // kChunk numbers, or the last, of up to kBlock weights. They become bf16 weight by weight, while
  // others are multiplied.
  struct Widening {
    const char* from;
    const char* after;  // the numbers that are widened next
    char* to;
    int64_t count;
    int64_t widened, weights;
  };

  Widening widening(int64_t column, int64_t k, int64_t buffer) {
    Widening w;
    w.from = static_cast<const char*>(task_.weight) + column * row_bytes_ + bytes_of(k);
    w.after =
        w.from + (k + kChunk >= task_.depth ? kBlock * row_bytes_ - bytes_of(k) : bytes_of(kChunk));
    w.to = weights_ + buffer * kTileBytes;
    w.count = least(kChunk, task_.depth - k);
    w.widened = 0;
    w.weights = column < task_.last ? least(kBlock, task_.last - column) : 0;
    if constexpr (kIsScaled<Weight>) {
      for (int64_t unit = 0; task_.offset != nullptr && unit * kUnit < w.count; ++unit) {
        const Bf16* const offsets = static_cast<const Bf16*>(task_.offset) + column +
                                    (k + unit * kUnit) / group_ * task_.scale_stride;
        for (int64_t c = 0; c < w.weights; c += kLanes) {
          Widened<Weight>::store_offsets(offsets_[unit] + c,
                                         load_first(offsets + c, w.weights - c));
        }
      }
    }
    return w;
  }

  // Widens up to `count` weights.
  template <bool kHasOffset>
  void widen_some(int64_t count) {
    Widening w = next_;
    for (count = least(count, w.weights - w.widened); count > 0; --count) {
      for (int64_t line = 0; line < bytes_of(kChunk); line += 64) {
        __builtin_prefetch(w.after + line);
      }
      const auto widen = [&](int64_t unit, const char* from) CUSTOM_PYPTO_INLINE_LAMBDA {
        store_pairs(w.to + unit * 2 * kTileBytes,
                    Widened<Weight>::template weights<kHasOffset>(from, offsets_[unit][w.widened]));
      };
      if (w.count == kChunk) {
        unroll<kChunk / kUnit>([&](int unit) CUSTOM_PYPTO_INLINE_LAMBDA {
          widen(unit, w.from + bytes_of(unit * kUnit));
        });
      } else {
        for (int64_t k = 0; k < w.count; k += kUnit) {  // zeros behind the last number
          char numbers[bytes_of(kUnit)] = {};
          const int64_t bytes = bytes_of(least(kUnit, w.count - k));
          __builtin_memcpy(numbers, w.from + bytes_of(k), static_cast<size_t>(bytes));
          widen(k / kUnit, numbers);
        }
      }
      w.from += row_bytes_;
      w.after += row_bytes_;
      w.to += kUnit * 2;
      ++w.widened;
    }
    next_ = w;
  }

  template <bool kHasOffset>
  void multiply(int64_t column) {
    const int64_t columns = least(kBlock, task_.last - column);
    const int64_t blocks = divide_up(task_.count, kBlock);
    widen_scales(column, columns);
    for (int64_t k = 0; k < task_.depth; k += kChunk) {
      const int64_t end = least(k + kChunk, task_.depth);
      widen_some<kHasOffset>(kBlock);
      const char* const weights = weights_ + buffer_ * kTileBytes;
      buffer_ = 1 - buffer_;
      next_ = end == task_.depth ? widening(column + kBlock, 0, buffer_)
                                 : widening(column, end, buffer_);
      const int64_t each = divide_up(kBlock, blocks * divide_up(end - k, kUnit));
      for (int64_t row = 0; row < task_.count; row += kBlock) {
        const bool is_wide = task_.count - row > kTileRows;
        float* const products = products_ + row * kBlock;
        for (int64_t at = k; at < end;) {
          const int64_t group = at / group_;
          const int64_t of_group = least((group + 1) * group_, task_.depth);
          const int64_t stop = least(of_group, end);
          if (at == group * group_) {
            clear_tiles();
          } else if (blocks > 1) {
            load_tiles(products, kBlock * 4, is_wide);
          }
          add_tile_products(weights + (at - k) / kUnit * 2 * kTileBytes, kUnit * 2, 2 * kTileBytes,
                            rows_ + (row * units_ * kUnit + at * kBlock) * 2, kBlock * 4,
                            divide_up(stop - at, kUnit) * kTileRows, is_wide, [&] {
                              add_group();
                              widen_some<kHasOffset>(each);
                            });
          if (stop == of_group || blocks > 1) store_tiles(products, kBlock * 4, is_wide);
          if (stop == of_group) stored_ = {row, group};
          at = stop;
        }
      }
    }
    add_group();
    write(column, columns);
  }

  // [group][column]
  void widen_scales(int64_t column, int64_t columns) {
    if constexpr (!kIsScaled<Weight>) {
      for (int64_t c = 0; c < columns; ++c) scales_[c] = 1.0f;
      return;
    }
    for (int64_t group = 0; group < groups_; ++group) {
      widen(static_cast<const Bf16*>(task_.scale) + group * task_.scale_stride + column, 1, columns,
            scales_ + group * kBlock);
    }
  }

  // Adds the products of a group to the sums. This waits for their stores, so other products begin
  // before.
  void add_group() {
    const int64_t row = stored_.row;
    if (row < 0) return;
    stored_.row = -1;
    const float* const scales = scales_ + stored_.group * kBlock;
    for (int64_t r = 0; r < least(kBlock, task_.count - row); r += kTileRows) {
      const float* const products = products_ + row * kBlock + r;
      float* const sums = sums_ + row * kBlock + r;
      for (int64_t c = 0; c < kBlock; ++c) {
        const F32 sum = stored_.group == 0 ? zero() : load(sums + c * kBlock);
        store(sums + c * kBlock,
              multiply_add(load(products + c * kBlock), broadcast(scales[c]), sum));
      }
    }
  }

  void write(int64_t column, int64_t columns) {
    float bias[kBlock] = {};
    for (int64_t c = 0; task_.bias != nullptr && c < columns; ++c) {
      bias[c] = task_.has_fp32_bias ? static_cast<const float*>(task_.bias)[column + c]
                                    : to_float(static_cast<const Bf16*>(task_.bias)[column + c]);
    }
    for (int64_t row = 0; row < task_.count; row += kTileRows) {
      for (int64_t c = 0; c < columns; c += kTileRows) {
        const float* const from = sums_ + (row / kBlock * kBlock + c) * kBlock + row % kBlock;
        F32 sums[kTileRows];
        for (int64_t i = 0; i < kTileRows; ++i) sums[i] = load(from + i * kBlock);
        transpose(sums);
        Bf16* const out = static_cast<Bf16*>(task_.out) + row * task_.out_stride + column + c;
        for (int64_t r = 0; r < least(kTileRows, task_.count - row); ++r) {
          alignas(64) float results[kTileRows];
          store(results, add(sums[r], load(bias + c)));
          narrow(results, least(kTileRows, columns - c), out + r * task_.out_stride);
        }
      }
    }
  }

  const LinearTask& task_;
  int64_t group_;
  int64_t groups_;
  int64_t units_;
  int64_t row_bytes_;
  int64_t bytes_;
  Widening next_ = {};
  struct {
    int64_t row, group;
  } stored_ = {-1, 0};  // products_ that sums_ lack
  int64_t buffer_ = 0;  // of weights_, for next_
  typename Widened<Weight>::Offset offsets_[kChunk / kUnit][kBlock] = {};  // for next_
  char* weights_;    // [unit][two buffers][kBlock][kUnit numbers of bf16]
  char* rows_;       // load_rows()
  float* products_;  // of a group: [block][kBlock columns][kBlock rows]
  float* sums_;      // the same, of all groups before
  float* scales_;    // widen_scales()
};

template <class Weight>
inline constexpr LinearKernel kFastLinear<Bf16, Weight> = {&TileLinear<Weight>::run,
                                                           &TileLinear<Weight>::scratch_bytes,
                                                           sizeof(Bf16),
                                                           sizeof(Bf16),
                                                           TileLinear<Weight>::kBlock,
                                                           &TileLinear<Weight>::takes,
                                                           &kLinear<Bf16, Bf16, Weight>};

#endif

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
