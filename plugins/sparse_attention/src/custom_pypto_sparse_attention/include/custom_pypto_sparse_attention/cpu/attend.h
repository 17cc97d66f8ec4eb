// Attention of one query token over selected keys: scores, online softmax and weighted sum, one
// block of keys at a time. Heads are the lanes, so maxima, exponentials and rescaling are vertical;
// the keys and, transposed, the values are the rows of the tile.
//
// The keys are cut into ranges by their number alone. Each range is computed by itself, and ranges
// are merged in order: a head's result depends only on the keys and on the heads of its vector, bit
// for bit, whatever the number of threads.
//
// Rounding a weight to bf16 has a relative error of 1.1e-3 (rms). The errors of many weights
// average out as the values do, so an output's error is as large a fraction of the rms of its row:
// too much for outputs near zero, unless the rms is small. So where the estimated outputs are
// larger than kPlainOutput, the rounding errors (residuals) of the weights are multiplied too.
#pragma once

#include <custom_pypto_blocks/cpu/exp2.h>
#include <custom_pypto_blocks/cpu/operands.h>
#include <custom_pypto_sparse_attention/attend_task.h>
#include <custom_pypto_sparse_attention/cpu/key_prefetcher.h>

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_sparse_attention::attend_ranges;
using custom_pypto_sparse_attention::AttendKernels;
using custom_pypto_sparse_attention::AttendTask;

template <class Element>
class Attend {
 public:
  // Prepares `scratch` for run_range.
  static void start(const AttendTask& task, char* scratch) { Attend(task, scratch).pack_query(); }

  // Computes one range into `partial`.
  static void run_range(const AttendTask& task, int64_t range, char* partial, char* scratch) {
    Attend attend(task, scratch);
    attend.run_range(range, attend.partial_at(partial));
  }

  // Merges the next range, `next`, into `partial`.
  static void merge(const AttendTask& task, char* partial, char* next) {
    const Attend attend(task, nullptr);
    attend.merge(attend.partial_at(partial), attend.partial_at(next));
  }

  // Writes the result of a partial that holds all ranges.
  static void write(const AttendTask& task, char* partial) {
    const Attend attend(task, nullptr);
    attend.write(attend.partial_at(partial));
  }

  static int64_t scratch_bytes(int64_t heads, int64_t latent, int64_t rope) {
    return sized(heads, latent, rope).bytes_;
  }
  static int64_t partial_bytes(int64_t heads, int64_t latent) {
    return sized(heads, latent, 0).partial_bytes_;
  }

 private:
  using Operand = typename OperandOf<Element>::Type;
  using Stored = typename OperandOf<Element>::Stored;
  using Step = Steps<Element, Operand>;
  using StoredStep = Steps<Stored, Operand>;
  static constexpr int64_t kDepth = Operand::kDepth;
  // Whether keys, and their values transposed, are multiplied in tile registers.
  static constexpr bool kUsesTiles = kHasBf16Tiles && kDepth == 2;
  // Vectors of heads, keys and steps that are multiplied together.
  static constexpr int kVectors = kUsesTiles ? 2 : kTileVectors;
  static constexpr int64_t kPanel = int64_t{kLanes} * kVectors;
  static constexpr int64_t kKeyRows = kUsesTiles ? 32 : kRows;
  static constexpr int64_t kSteps = kUsesTiles ? 16 : 1;
  // Largest block of keys: they, their values, scores and weights fit the L2 cache.
  static constexpr int64_t kKeysOfVectors = 144;
  static constexpr int64_t kKeysOfTiles = 128;
  static constexpr int64_t kKeys = kUsesTiles ? kKeysOfTiles : kKeysOfVectors;
  static_assert(kKeys % kKeyRows == 0);
  // Keys that are loaded at a time: half the L1 cache.
  static constexpr int64_t kLoadedKeys = kUsesTiles ? kKeyRows : 4 * kRows;
  // Largest rms of outputs at which bf16 weights alone are enough: 0.03 % of the outputs are beyond
  // 1e-4 + 3 % (measured; at 0.04 up to 0.2 %).
  static constexpr float kPlainOutput = 0.025f;
  // Fewest vectors of a block's values that are sampled to estimate their size: the fewer the keys,
  // the more vectors of each.
  static constexpr int64_t kSampleVectors = 128;
  static constexpr float kLog2E = 1.44269504088896341f;
  static constexpr float kLn2 = 0.693147180559945309f;
  // Value columns that are packed side by side: a cache line of steps.
  static constexpr int64_t kGroup = 16;
  static constexpr int64_t kGroupBytes = kGroup * 4;
  // The stride of groups of values; no power of two, so that groups share no cache set.
  static constexpr int64_t kGroupStride = (kKeys / kDepth + 1) * kGroupBytes;
  // The stride of columns of values that are rows of tiles.
  static constexpr int64_t kColumnStride = (kKeys / kDepth + kGroup) * 4;

  // The state of the online softmax after some keys. Sums are [panel][column][kPanel]. `maximum` is
  // of scores times log2(e): weights are powers of 2.
  struct Partial {
    float* sums;
    float* maximum;
    float* total;
  };

  static Attend sized(int64_t heads, int64_t latent, int64_t rope) {
    static constexpr AttendTask kEmpty = {};
    return Attend(kEmpty, heads, latent, rope, nullptr);
  }

  Attend(const AttendTask& task, char* scratch)
      : Attend(task, task.heads, task.latent, task.rope, scratch) {}

  Attend(const AttendTask& task, int64_t heads, int64_t latent, int64_t rope, char* scratch)
      : task_(task),
        in_place_(!kUsesTiles && Step::in_place(latent) && Step::in_place(rope)),
        panels_(divide_up(heads, kPanel)),
        latent_steps_(steps_of<Operand>(latent)),
        steps_(round_up(latent_steps_ + steps_of<Operand>(rope), kSteps)),
        groups_(round_up(divide_up(latent, kGroup), kUsesTiles ? 2 : 1)),
        prefetcher_(task) {
    Arena partial(nullptr);
    partial.allocate(panels_ * groups_ * kGroup * kPanel * 4);
    partial.allocate(panels_ * kPanel * 4);
    partial.allocate(panels_ * kPanel * 4);
    partial_bytes_ = partial.used();
    Arena arena(scratch);
    query_ = arena.allocate(panels_ * steps_ * kPanel * 4);
    zeros_ = arena.allocate(steps_ * 4);
    keys_ = arena.allocate(in_place_ ? 0 : greater(kKeys, kLanes) * steps_ * 4);
    values_ = arena.allocate(groups_ * (kUsesTiles ? kGroup * kColumnStride : kGroupStride));
    scores_ = arena.allocate<float>((kKeys + kRows) * kPanel * 4);
    weights_ = arena.allocate(kKeys / kDepth * kPanel * 4);
    residuals_ = arena.allocate(Step::kRounds ? kKeys / kDepth * kPanel * 4 : 0);
    rescale_ = arena.allocate<float>(kPanel * 4);
    mean_squares_ = arena.allocate<float>(kKeys * 4);
    bytes_ = arena.used();
    if (scratch != nullptr) Step::zeros(steps_, zeros_);
  }

  Partial partial_at(char* at) const {
    Arena arena(at);
    float* sums = arena.allocate<float>(panels_ * groups_ * kGroup * kPanel * 4);
    float* maximum = arena.allocate<float>(panels_ * kPanel * 4);
    return {sums, maximum, arena.allocate<float>(panels_ * kPanel * 4)};
  }

  // The query, step by step, heads contiguous: [panel][step][kPanel].
  void pack_query() {
    for (int64_t head = 0; head < panels_ * kPanel; head += kLanes) {
      const char* latent[kLanes];
      const char* rope[kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        latent[lane] = rope[lane] = zeros_;
        if (head + lane >= task_.heads) continue;
        place_row(
            static_cast<const Element*>(task_.query) + (head + lane) * task_.query_head_stride,
            static_cast<const Element*>(task_.query_rope) +
                (head + lane) * task_.query_rope_head_stride,
            lane, latent[lane], rope[lane]);
      }
      char* out = query_ + (head / kPanel * steps_ * kPanel + head % kPanel) * 4;
      transpose_steps(latent, latent_steps_, out);
      transpose_steps(rope, steps_ - latent_steps_, out + latent_steps_ * kPanel * 4);
    }
  }

  // Steps of kLanes rows to kLanes lanes of a panel's steps.
  static void transpose_steps(const char* const* rows, int64_t steps, char* out) {
    int64_t step = 0;
    for (; step + kLanes <= steps; step += kLanes) {
      F32 words[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        words[i] = load(reinterpret_cast<const float*>(rows[i] + step * 4));
      }
      transpose(words);
      for (int64_t i = 0; i < kLanes; ++i) {
        store(reinterpret_cast<float*>(out + (step + i) * kPanel * 4), words[i]);
      }
    }
    for (; step < steps; ++step) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        __builtin_memcpy(out + (step * kPanel + lane) * 4, rows[lane] + step * 4, 4);
      }
    }
  }

  // Points latent_at and rope_at to the steps of a row: in place, or converted into row `place` of
  // keys_.
  void place_row(const Element* latent, const Element* rope, int64_t place, const char*& latent_at,
                 const char*& rope_at) const {
    if (in_place_) {
      latent_at = reinterpret_cast<const char*>(latent);
      rope_at = reinterpret_cast<const char*>(rope);
      return;
    }
    char* row = key_at(place);
    char* rope_steps = row + latent_steps_ * 4;
    if constexpr (kUsesTiles) Step::zeros(kSteps, row + (steps_ - kSteps) * 4);
    Step::from_row(latent, task_.latent, row);
    Step::from_row(rope, task_.rope, rope_steps);
    latent_at = row;
    rope_at = rope_steps;
  }

  char* key_at(int64_t place) const { return keys_ + place * steps_ * 4; }

  // The first key of a range; ranges are as even as whole steps allow.
  int64_t begin_of(int64_t range) const {
    const int64_t size = divide_up(task_.count, attend_ranges(task_.count));
    return least(range * round_up(size, kDepth), task_.count);
  }
  int64_t end_of(int64_t range) const { return begin_of(range + 1); }

  void run_range(int64_t range, const Partial& partial) {
    [[maybe_unused]] const Tiles tiles{};
    const int64_t begin = begin_of(range);
    const int64_t end = end_of(range);
    for (int64_t i = 0; i < panels_ * kPanel; ++i) {
      // Not -inf: while every score is -inf, 2^(-inf - maximum) must be 0, not NaN.
      partial.maximum[i] = -__FLT_MAX__;
      partial.total[i] = 0.0f;
    }
    const int64_t block = round_up(divide_up(end - begin, divide_up(end - begin, kKeys)), kKeyRows);
    prefetcher_.begin(begin);
    prefetcher_.until(begin + kLoadedKeys);
    while (prefetcher_.is_behind()) prefetcher_.advance();
    for (int64_t first = begin; first < end; first += block) {
      const int64_t count = least(block, end - first);
      for (int64_t panel = 0; panel < panels_; ++panel) {
        score(panel, first, count);
        if (panel == 0 && Step::kRounds) estimate_values(first, count);
        compute_weights(panel, partial, first + count - begin, count);
        add_values(panel, partial, count, first == begin);
      }
    }
  }

  // Loads keys [near, last) of the block that begins with key `first`.
  void load_keys(int64_t first, int64_t count, int64_t near, int64_t last) {
    for (int64_t key = near; key < last; ++key) {
      latent_[key] = rope_[key] = zeros_;  // padding: tiles of keys and steps of values are whole
      if (key >= count) {
        if constexpr (kUsesTiles) Step::zeros(steps_, key_at(key));
        continue;
      }
      place_row(static_cast<const Element*>(task_.latent_rows[first + key]),
                static_cast<const Element*>(task_.rope_rows[first + key]), key, latent_[key],
                rope_[key]);
    }
  }

  // Called by multiply_tile between steps over the latents of kRows keys: prefetches later keys,
  // and packs these as values, [group][step][kGroup], while they are in the L1 cache.
  class PrefetchAndPack {
   public:
    PrefetchAndPack(Attend& attend, int64_t key)
        : prefetch_{&attend.prefetcher_},
          rows_(attend.latent_ + key),
          out_(attend.values_ + key / kDepth * kGroupBytes),
          end_(attend.whole_columns()) {}

    inline void advance() {
      prefetch_.advance();
      if (call_ < kPackingCalls && column_ < end_) {
        const Stored* const rows[2] = {
            reinterpret_cast<const Stored*>(rows_[call_ * kDepth]) + column_,
            reinterpret_cast<const Stored*>(rows_[call_ * kDepth + kDepth - 1]) + column_};
        char* const out = out_ + call_ * kGroupBytes;
        StoredStep::from_32_columns(rows, out, out + kGroupStride);
      }
      if (++call_ == kLineCalls) {
        call_ = 0;
        column_ += 2 * kGroup;
        out_ += 2 * kGroupStride;
      }
    }

   private:
    // Calls while the tile advances 2 * kGroup columns; the first kPackingCalls pack a step each.
    static constexpr int64_t kLineCalls = 2 * kGroup / kDepth / kPrefetchSteps<Operand>;
    static constexpr int64_t kPackingCalls = kRows / kDepth;
    static_assert(kPackingCalls <= kLineCalls);

    PrefetchBy<KeyPrefetcher<Element>> prefetch_;
    const char* const* rows_;
    char* out_;
    int64_t end_;
    int64_t call_ = 0;
    int64_t column_ = 0;
  };

  int64_t whole_columns() const { return task_.latent / (2 * kGroup) * (2 * kGroup); }

  // Packs the columns that PrefetchAndPack leaves.
  void pack_last_columns(int64_t first_key, int64_t last) {
    for (int64_t key = first_key; key < last; key += kDepth) {
      int64_t column = whole_columns();
      char* out = values_ + key / kDepth * kGroupBytes + column / kGroup * kGroupStride;
      for (; column < task_.latent; column += kGroup, out += kGroupStride) {
        const int64_t columns = least(kGroup, task_.latent - column);
        const Stored* at[2] = {reinterpret_cast<const Stored*>(latent_[key]) + column,
                               reinterpret_cast<const Stored*>(latent_[key + kDepth - 1]) + column};
        StoredStep::from_rows(at, 1, columns, out);
        StoredStep::zeros(kGroup - columns, out + columns * 4);
      }
    }
  }

  // Estimates mean_squares_[key] from a sample of the columns of the key's values, different ones
  // for the next key.
  void estimate_values(int64_t first, int64_t count) {
    const int64_t vectors = task_.latent / kLanes;
    const int64_t each = least(divide_up(kSampleVectors, count), vectors);
    int64_t vector = 0;
    for (int64_t key = 0; key < count; ++key) {
      const auto* latent = static_cast<const Element*>(task_.latent_rows[first + key]);
      F32 sum = zero();
      for (int64_t i = 0; i < each; ++i) {
        const F32 value = load(latent + vector * kLanes);
        sum = multiply_add(value, value, sum);
        vector = vector + 1 == vectors ? 0 : vector + 1;
      }
      mean_squares_[key] =
          each == 0 ? 1.0f : reduce_add(sum) / static_cast<float>(each * int64_t{kLanes});
    }
  }

  // scores_[key][lane], unscaled, of `count` keys from `first` on. The first panel loads the keys
  // and prefetches the next ones.
  void score(int64_t panel, int64_t first, int64_t count) {
    if constexpr (kUsesTiles) return score_in_tiles(panel, first, count);
    const char* query = query_ + panel * steps_ * kPanel * 4;
    const int64_t whole = round_up(count, kRows);
    for (int64_t near = 0; near < whole; near += kLoadedKeys) {
      const int64_t last = least(near + kLoadedKeys, whole);
      if (panel == 0) {
        load_keys(first, count, near, last);
        pack_last_columns(near, last);
        prefetcher_.until(first + last + kLoadedKeys);
      }
      for (int64_t key = near; key < last; key += kRows) {
        if (panel == 0) {
          score_tile(key, query, PrefetchAndPack(*this, key),
                     PrefetchBy<KeyPrefetcher<Element>>{&prefetcher_});
        } else {
          score_tile(key, query, NoPrefetch(), NoPrefetch());
        }
      }
    }
  }

  template <class WithLatent, class WithRope>
  void score_tile(int64_t key, const char* query, WithLatent with_latent, WithRope with_rope) {
    F32 c[kRows][kVectors];
    clear_tile(c);
    multiply_tile<Operand, kRows, kVectors>(c, latent_ + key, query, kPanel * 4, latent_steps_,
                                            with_latent);
    multiply_tile<Operand, kRows, kVectors>(c, rope_ + key, query + latent_steps_ * kPanel * 4,
                                            kPanel * 4, steps_ - latent_steps_, with_rope);
    store_tile(c, scores_ + key * kPanel, kPanel);
  }

  // As score. The first panel also transposes the values of the keys that it loads.
  void score_in_tiles(int64_t panel, int64_t first, int64_t count) {
    const char* query = query_ + panel * steps_ * kPanel * 4;
    for (int64_t key = 0; key < count; key += kKeyRows) {
      if (panel == 0) {
        load_keys(first, count, key, key + kKeyRows);
        prefetcher_.until(first + key + kKeyRows + kLoadedKeys);
        transpose_values(key);
      }
      multiply_tiles(key_at(key), steps_ * 4, query, kPanel * 4, steps_, scores_ + key * kPanel,
                     kPanel * 4, true, false,
                     [&]() CUSTOM_PYPTO_INLINE_LAMBDA { prefetch_twice(); });
    }
  }

  void prefetch_twice() {
    prefetcher_.advance();
    prefetcher_.advance();
  }

  // Values of kKeyRows keys to columns of steps, kColumnStride apart.
  void transpose_values(int64_t first_key) {
    for (int64_t column = 0; column < groups_ * kGroup; column += kGroup) {
      F32 steps[kTileRows];
      for (int64_t i = 0; i < kTileRows; ++i) {
        const auto* even = reinterpret_cast<const Element*>(key_at(first_key + 2 * i));
        const auto* odd = reinterpret_cast<const Element*>(key_at(first_key + 2 * i + 1));
        steps[i] = reinterpret_cast<F32>(pair_up(even + column, odd + column));
      }
      transpose(steps);
      char* out = values_ + column * kColumnStride + first_key * 2;
      for (int64_t i = 0; i < kTileRows; ++i) {
        store(reinterpret_cast<float*>(out + i * kColumnStride), steps[i]);
      }
      prefetch_twice();
    }
  }

  // Turns the block's `count` scores into weights 2^(score * log2(e) - maximum), in steps along
  // keys: weights_[step][lane]. rescale_ is the factor of earlier sums under the new maximum.
  // `seen` keys of the range have been scored. has_residual_ says for which vectors the residuals
  // of the weights matter.
  void compute_weights(int64_t panel, const Partial& partial, int64_t seen, int64_t count) {
    const F32 scale = broadcast(task_.scale * kLog2E);
    // Extrapolate to all keys: the sum of weights, and that of squares of weighted values.
    const float all = static_cast<float>(task_.count);
    const F32 total_factor = broadcast(all / static_cast<float>(seen));
    const F32 square_factor = broadcast(all / static_cast<float>(count));
    F32 highest[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      highest[v] = load(partial.maximum + panel * kPanel + v * kLanes);
    }
    for (int64_t key = 0; key < count; ++key) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        highest[v] = max(multiply(load(scores_ + key * kPanel + v * kLanes), scale), highest[v]);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      float* maximum = partial.maximum + panel * kPanel + v * kLanes;
      float* total = partial.total + panel * kPanel + v * kLanes;
      float* scores = scores_ + v * kLanes;
      char* weights = weights_ + v * kLanes * 4;
      const F32 now = highest[v];
      const F32 factor = exp2(subtract(load(maximum), now));
      F32 sum = multiply(load(total), factor);
      F32 squares = zero();
      for (int64_t key = 0; key < count; key += kDepth) {
        F32 weight[2] = {zero(), zero()};
        for (int64_t d = 0; d < least(kDepth, count - key); ++d) {
          float* at = scores + (key + d) * kPanel;
          // Not fused: the maximum was rounded, and for large scores the difference would be large.
          weight[d] = exp2(subtract(multiply(load(at), scale), now));
          sum = add(sum, weight[d]);
          if (!Step::kRounds) continue;
          squares = multiply_add(multiply(weight[d], broadcast(mean_squares_[key + d])), weight[d],
                                 squares);
          store(at, weight[d]);
        }
        Step::from_vectors(weight, weights + key / kDepth * kPanel * 4);
      }
      end_steps(count, weights);
      store(maximum, now);
      store(total, sum);
      store(rescale_ + v * kLanes, factor);
      if (!Step::kRounds) continue;
      const F32 all_weights = multiply(sum, total_factor);
      const F32 output =
          divide(multiply(squares, square_factor), multiply(all_weights, all_weights));
      has_residual_[v] = reduce_max(max(output, zero())) > kPlainOutput * kPlainOutput;
      if (has_residual_[v]) pack_residuals(v, count);
    }
  }

  // Packs the rounding errors of the weights of a vector of heads.
  void pack_residuals(int v, int64_t count) {
    const float* weights = scores_ + v * kLanes;
    char* residuals = residuals_ + v * kLanes * 4;
    for (int64_t key = 0; key < count; key += kDepth) {
      F32 weight[2] = {load(weights + key * kPanel), zero()};
      if (key + 1 < count) weight[1] = load(weights + (key + 1) * kPanel);
      Step::from_residual(weight, residuals + key / kDepth * kPanel * 4);
    }
    end_steps(count, residuals);
  }

  // Zeros after the steps of `count` keys, as far as tiles take them.
  static void end_steps(int64_t count, char* lanes) {
    const int64_t steps = steps_of<Operand>(count);
    for (int64_t step = steps; step < round_up(steps, kSteps); ++step) {
      store(reinterpret_cast<float*>(lanes + step * kPanel * 4), zero());
    }
  }

  // sums[panel][column][lane] = sums * rescale_ + values^T weights; the first block has no earlier
  // sums.
  void add_values(int64_t panel, const Partial& partial, int64_t count, bool is_first) {
    if constexpr (kUsesTiles) return add_values_in_tiles(panel, partial, count, is_first);
    constexpr int kTiles = static_cast<int>((kGroup + kRows - 1) / kRows);
    float* sums = partial.sums + panel * groups_ * kGroup * kPanel;
    const char* values = values_;
    const int64_t steps = steps_of<Operand>(count);
    bool all_have_residuals = Step::kRounds;
    for (int v = 0; v < kVectors; ++v) all_have_residuals = all_have_residuals && has_residual_[v];
    for (int64_t group = 0; group < groups_; ++group) {
      if (all_have_residuals) {
        add_group<kTiles, 0, true>(values, steps, sums, is_first);
      } else {
        add_group<kTiles, 0, false>(values, steps, sums, is_first);
        if constexpr (Step::kRounds) add_residuals(values, steps, sums);
      }
      values += kGroupStride;
      sums += kGroup * kPanel;
    }
  }

  // kGroup columns in tiles as even as possible, from column kFirst on.
  template <int kTiles, int kFirst, bool kWithResiduals>
  void add_group(const char* values, int64_t steps, float* sums, bool is_first) {
    constexpr int kTile = (static_cast<int>(kGroup) - kFirst + kTiles - 1) / kTiles;
    const char* rows[kTile];
    F32 c[kTile][kVectors];
    for (int r = 0; r < kTile; ++r) rows[r] = values + (kFirst + r) * 4;
    if (is_first) {
      clear_tile(c);
    } else {
      load_tile(c, sums + kFirst * kPanel, kPanel);
      scale_tile(c, rescale_);
    }
    multiply_tile<Operand, kTile, kVectors, kGroupBytes>(c, rows, weights_, kPanel * 4, steps);
    if constexpr (kWithResiduals) {
      multiply_tile<Operand, kTile, kVectors, kGroupBytes>(c, rows, residuals_, kPanel * 4, steps);
    }
    store_tile(c, sums + kFirst * kPanel, kPanel);
    if constexpr (kTiles > 1) {
      add_group<kTiles - 1, kFirst + kTile, kWithResiduals>(values, steps, sums, is_first);
    }
  }

  // Adds the product of the residuals where only some vectors of heads have them: all columns of a
  // group for one vector. The same bits as add_group's.
  void add_residuals(const char* values, int64_t steps, float* sums) const {
    for (int v = 0; v < kVectors; ++v) {
      if (!has_residual_[v]) continue;
      const char* rows[kGroup];
      F32 c[kGroup][1];
      for (int r = 0; r < kGroup; ++r) rows[r] = values + r * 4;
      load_tile(c, sums + v * kLanes, kPanel);
      multiply_tile<Operand, kGroup, 1, kGroupBytes>(c, rows, residuals_ + v * kLanes * 4,
                                                     kPanel * 4, steps);
      store_tile(c, sums + v * kLanes, kPanel);
    }
  }

  // As add_values.
  void add_values_in_tiles(int64_t panel, const Partial& partial, int64_t count, bool is_first) {
    const int64_t steps = round_up(steps_of<Operand>(count), kSteps);
    float* sums = partial.sums + panel * groups_ * kGroup * kPanel;
    const char* values = values_;
    for (int64_t column = 0; column < groups_ * kGroup; column += kKeyRows) {
      if (!is_first) scale_sums(sums);
      const auto add = [&](const char* lanes, int v, bool is_wide,
                           bool adds) CUSTOM_PYPTO_INLINE_LAMBDA {
        multiply_tiles(values, kColumnStride, lanes + v * kLanes * 4, kPanel * 4, steps,
                       sums + v * kLanes, kPanel * 4, is_wide, adds, [] {});
      };
      add(weights_, 0, true, !is_first);
      const bool is_wide = has_residual_[0] && has_residual_[1];
      if (has_residual_[0]) add(residuals_, 0, is_wide, true);
      if (has_residual_[1] && !is_wide) add(residuals_, 1, false, true);
      values += kKeyRows * kColumnStride;
      sums += kKeyRows * kPanel;
    }
  }

  void scale_sums(float* sums) const {
    for (int v = 0; v < kVectors; ++v) {
      const F32 factor = load(rescale_ + v * kLanes);
      for (int64_t row = 0; row < kKeyRows; ++row) {
        float* const at = sums + row * kPanel + v * kLanes;
        store(at, multiply(load(at), factor));
      }
    }
  }

  // Merges `from` into `into`. The keys of `from` follow the keys of `into`.
  void merge(const Partial& into, const Partial& from) const {
    for (int64_t lane = 0; lane < panels_ * kPanel; lane += kLanes) {
      const F32 before = load(into.maximum + lane);
      const F32 other = load(from.maximum + lane);
      const F32 now = max(other, before);
      const F32 factor = exp2(subtract(before, now));
      const F32 other_factor = exp2(subtract(other, now));
      store(into.maximum + lane, now);
      store(into.total + lane, multiply_add(load(from.total + lane), other_factor,
                                            multiply(load(into.total + lane), factor)));
      const int64_t at = lane / kPanel * groups_ * kGroup * kPanel + lane % kPanel;
      float* sums = into.sums + at;
      const float* others = from.sums + at;
      for (int64_t i = 0; i < groups_ * kGroup * kPanel; i += kPanel) {
        store(sums + i,
              multiply_add(load(others + i), other_factor, multiply(load(sums + i), factor)));
      }
    }
  }

  // Divides the sums by their totals, and transposes them to rows of heads.
  void write(const Partial& partial) const {
    for (int64_t head = 0; head < task_.heads; head += kLanes) {
      const float* sums = partial.sums + head / kPanel * groups_ * kGroup * kPanel + head % kPanel;
      const F32 kept = task_.sinks == nullptr ? broadcast(1.0f) : add_sinks(partial, head);
      const F32 factor = divide(kept, load(partial.total + head));
      auto* out = static_cast<Element*>(task_.out) + head * task_.out_head_stride;
      const int64_t heads = least(kLanes, task_.heads - head);
      for (int64_t column = 0; column < task_.latent; column += kLanes) {
        // The rows of the next heads: else their stores would wait for memory.
        for (int64_t i = kLanes; i < least(2 * kLanes, task_.heads - head); ++i) {
          __builtin_prefetch(out + i * task_.out_head_stride + column, 1);
        }
        F32 columns[kLanes];
        for (int64_t i = 0; i < kLanes; ++i) {
          columns[i] = multiply(load(sums + (column + i) * kPanel), factor);
        }
        transpose(columns);
        const int64_t count = least(kLanes, task_.latent - column);
        for (int64_t i = 0; i < heads; ++i) {
          float numbers[kLanes];
          store(numbers, columns[i]);
          narrow(numbers, count, out + i * task_.out_head_stride + column);
        }
      }
    }
    if (task_.log_sum_exp == nullptr) return;
    for (int64_t head = 0; head < task_.heads; ++head) {
      task_.log_sum_exp[head] = partial.maximum[head] * kLn2 + __builtin_logf(partial.total[head]);
    }
  }

  // Adds the weights of the sinks of heads [head, head + kLanes) to their totals, and returns the
  // factor of the heads' sums under the new maxima.
  F32 add_sinks(const Partial& partial, int64_t head) const {
    float sinks[kLanes] = {};
    for (int64_t i = 0; i < least(kLanes, task_.heads - head); ++i) {
      sinks[i] = task_.sinks[head + i] * kLog2E;
    }
    const F32 sink = load(sinks);
    const F32 before = load(partial.maximum + head);
    const F32 now = max(sink, before);
    const F32 factor = exp2(subtract(before, now));
    store(partial.maximum + head, now);
    store(partial.total + head,
          multiply_add(load(partial.total + head), factor, exp2(subtract(sink, now))));
    return factor;
  }

  const AttendTask& task_;
  bool in_place_;
  int64_t panels_;
  int64_t latent_steps_;
  int64_t steps_;
  int64_t groups_;
  KeyPrefetcher<Element> prefetcher_;
  char* query_;
  char* zeros_;
  char* keys_;
  char* values_;
  float* scores_;
  char* weights_;
  char* residuals_;
  float* rescale_;
  float* mean_squares_;
  int64_t partial_bytes_;
  int64_t bytes_;
  // The rows of a block's keys.
  const char* latent_[kKeys + kRows];
  const char* rope_[kKeys + kRows];
  bool has_residual_[kVectors] = {};
};

template <class Element>
constexpr AttendKernels kAttend = {
    &Attend<Element>::start, &Attend<Element>::run_range,     &Attend<Element>::merge,
    &Attend<Element>::write, &Attend<Element>::scratch_bytes, &Attend<Element>::partial_bytes,
};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
