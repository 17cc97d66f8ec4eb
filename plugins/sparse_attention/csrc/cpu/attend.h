// Attention of one query token over selected keys: scores, online softmax and weighted sum, block
// of keys by block of keys. Heads are the lanes, so maxima, exponentials and rescaling are
// vertical; the keys and, transposed, the values are the rows of the tile.
//
// The keys are cut into ranges, by their number alone. Each range is attended to by itself, and the
// ranges are merged in their order; so a head's result depends on the keys and the heads of its
// vector alone, bit for bit, whichever threads took part.
//
// Where the operand rounds weights to bf16, that costs 1.1e-3 of a weight (rms). Many small errors
// average out like the values themselves, so an output is off by as large a part of its row's rms:
// too much for outputs near zero, unless the rms is small. So when the outputs are estimated to be
// larger than kPlainOutput, the weights' rest is multiplied in too.
#pragma once

#include <custom_pypto/cpu/exp2.h>

#include "kernels.h"
#include "operands.h"
#include "prefetch_keys.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_sparse_attention::attend_ranges;
using custom_pypto_sparse_attention::AttendTask;

template <class Element>
class Attend {
 public:
  // Makes `scratch` ready for run_range.
  static void start(const AttendTask& task, char* scratch) { Attend(task, scratch).pack_query(); }

  // One range, to `partial`.
  static void run_range(const AttendTask& task, int64_t range, char* partial, char* scratch) {
    Attend attend(task, scratch);
    attend.run_range(range, attend.partial_at(partial));
  }

  // Adds to `partial` what the range after its ranges gave.
  static void merge(const AttendTask& task, char* partial, char* next) {
    const Attend attend(task, nullptr);
    attend.merge(attend.partial_at(partial), attend.partial_at(next));
  }

  // The result, from a partial with all ranges.
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
  // Keys of a block at most: they, their values, scores and weights fit the second-level cache.
  static constexpr int64_t kKeys = 144;
  static_assert(kKeys % kRows == 0);
  // Keys that are brought at a time: half the first-level cache.
  static constexpr int64_t kNearKeys = 4 * kRows;
  // The rms of outputs up to which bf16 weights alone leave all but 0.03 % of them within 1e-4 + 3
  // % (measured; at 0.04 it is up to 0.2 %).
  static constexpr float kPlainOutput = 0.025f;
  // How many vectors of a block's values are looked at, at least, to estimate their size: where
  // keys are few, more of each.
  static constexpr int64_t kSampleVectors = 128;
  static constexpr float kLog2E = 1.44269504088896341f;
  static constexpr float kLn2 = 0.693147180559945309f;
  // Value columns that are packed side by side: a cache line of steps.
  static constexpr int64_t kGroup = 16;
  static constexpr int64_t kGroupBytes = kGroup * 4;
  // From one group of values to the next; not a multiple of what makes lines compete for a place.
  static constexpr int64_t kGroupStride = (kKeys / kDepth + 1) * kGroupBytes;

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
        in_place_(Step::in_place(latent) && Step::in_place(rope)),
        panels_(divide_up(heads, kPanel)),
        latent_steps_(steps_of<Operand>(latent)),
        steps_(latent_steps_ + steps_of<Operand>(rope)),
        groups_(divide_up(latent, kGroup)),
        prefetch_(task) {
    Pieces partial(nullptr);
    partial.take(panels_ * groups_ * kGroup * kPanel * 4);
    partial.take(panels_ * kPanel * 4);
    partial.take(panels_ * kPanel * 4);
    partial_bytes_ = partial.taken();
    Pieces pieces(scratch);
    query_ = pieces.take(panels_ * steps_ * kPanel * 4);
    zeros_ = pieces.take(steps_ * 4);
    keys_ = pieces.take(in_place_ ? 0 : greater(kKeys, kLanes) * steps_ * 4);
    values_ = pieces.take(groups_ * kGroupStride);
    scores_ = pieces.take<float>((kKeys + kRows) * kPanel * 4);
    weights_ = pieces.take(kKeys / kDepth * kPanel * 4);
    rest_ = pieces.take(Step::kRounds ? kKeys / kDepth * kPanel * 4 : 0);
    rescale_ = pieces.take<float>(kPanel * 4);
    mean_squares_ = pieces.take<float>(kKeys * 4);
    bytes_ = pieces.taken();
    if (scratch != nullptr) Step::zeros(steps_, zeros_);
  }

  Partial partial_at(char* at) const {
    Pieces pieces(at);
    float* sums = pieces.take<float>(panels_ * groups_ * kGroup * kPanel * 4);
    float* maximum = pieces.take<float>(panels_ * kPanel * 4);
    return {sums, maximum, pieces.take<float>(panels_ * kPanel * 4)};
  }

  // The query, step by step, heads contiguous: [panel][step][kPanel].
  void pack_query() {
    for (int64_t head = 0; head < panels_ * kPanel; head += kLanes) {
      const char* latent[kLanes];
      const char* rope[kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        latent[lane] = rope[lane] = zeros_;
        if (head + lane >= task_.heads) continue;
        take_row(static_cast<const Element*>(task_.query) + (head + lane) * task_.query_head_stride,
                 static_cast<const Element*>(task_.query_rope) +
                     (head + lane) * task_.query_rope_head_stride,
                 lane, latent[lane], rope[lane]);
      }
      char* out = query_ + (head / kPanel * steps_ * kPanel + head % kPanel) * 4;
      turn(latent, latent_steps_, out);
      turn(rope, steps_ - latent_steps_, out + latent_steps_ * kPanel * 4);
    }
  }

  // Steps of kLanes rows to kLanes lanes of a panel's steps.
  static void turn(const char* const* rows, int64_t steps, char* out) {
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

  // Says where the steps of a row's two parts are: where they lie, or at place `place` of keys_.
  void take_row(const Element* latent, const Element* rope, int64_t place, const char*& latent_at,
                const char*& rope_at) const {
    if (in_place_) {
      latent_at = reinterpret_cast<const char*>(latent);
      rope_at = reinterpret_cast<const char*>(rope);
      return;
    }
    char* row = keys_ + place * steps_ * 4;
    Step::from_row(latent, task_.latent, row);
    Step::from_row(rope, task_.rope, row + latent_steps_ * 4);
    latent_at = row;
    rope_at = row + latent_steps_ * 4;
  }

  // Where a range begins; ranges are as even as whole steps allow.
  int64_t begin_of(int64_t range) const {
    const int64_t size = divide_up(task_.count, attend_ranges(task_.count));
    return least(range * round_up(size, kDepth), task_.count);
  }
  int64_t end_of(int64_t range) const { return begin_of(range + 1); }

  void run_range(int64_t range, const Partial& partial) {
    const int64_t begin = begin_of(range);
    const int64_t end = end_of(range);
    for (int64_t i = 0; i < panels_ * kPanel; ++i) {
      // Not -inf: until a key has another score than that, 2^(-inf - maximum) must be 0, not NaN.
      partial.maximum[i] = -__FLT_MAX__;
      partial.total[i] = 0.0f;
    }
    const int64_t block = round_up(divide_up(end - begin, divide_up(end - begin, kKeys)), kRows);
    prefetch_.begin(begin);
    prefetch_.until(begin + kNearKeys);
    while (prefetch_.is_behind()) prefetch_.advance();
    for (int64_t first = begin; first < end; first += block) {
      const int64_t count = least(block, end - first);
      for (int64_t panel = 0; panel < panels_; ++panel) {
        score(panel, first, count);
        if (panel == 0 && Step::kRounds) estimate_values(first, count);
        weigh(panel, partial, first + count - begin, count);
        add_values(panel, partial, count, first == begin);
      }
    }
  }

  // Brings keys [near, last) of the block that begins with key `first`.
  void take_keys(int64_t first, int64_t count, int64_t near, int64_t last) {
    for (int64_t key = near; key < last; ++key) {
      latent_[key] = rope_[key] = zeros_;  // so that tiles of keys, and steps of values, are whole
      if (key >= count) continue;
      take_row(static_cast<const Element*>(task_.latent_rows[first + key]),
               static_cast<const Element*>(task_.rope_rows[first + key]), key, latent_[key],
               rope_[key]);
    }
  }

  // For multiply_tile with the latents of kRows keys: asks for later keys, and packs what the tile
  // comes to as values, [group][step][kGroup], while it is in the nearest cache.
  class Bring {
   public:
    Bring(Attend& attend, int64_t key)
        : ask_{&attend.prefetch_},
          rows_(attend.latent_ + key),
          out_(attend.values_ + key / kDepth * kGroupBytes),
          end_(attend.whole_columns()) {}

    inline void advance() {
      ask_.advance();
      if (turn_ < kTurns && column_ < end_) {
        const Stored* const rows[2] = {
            reinterpret_cast<const Stored*>(rows_[turn_ * kDepth]) + column_,
            reinterpret_cast<const Stored*>(rows_[turn_ * kDepth + kDepth - 1]) + column_};
        char* const out = out_ + turn_ * kGroupBytes;
        StoredStep::from_32_columns(rows, out, out + kGroupStride);
      }
      if (++turn_ == kLineTurns) {
        turn_ = 0;
        column_ += 2 * kGroup;
        out_ += 2 * kGroupStride;
      }
    }

   private:
    // The tile takes so many turns for 2 * kGroup columns; each packs one step of them.
    static constexpr int64_t kLineTurns = 2 * kGroup / kDepth / kPrefetchSteps;
    static constexpr int64_t kTurns = kRows / kDepth;
    static_assert(kTurns <= kLineTurns);

    AskForKeys<Element> ask_;
    const char* const* rows_;
    char* out_;
    int64_t end_;
    int64_t turn_ = 0;
    int64_t column_ = 0;
  };

  int64_t whole_columns() const { return task_.latent / (2 * kGroup) * (2 * kGroup); }

  // The values' columns that Bring leaves.
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

  // mean_squares_[key], estimated from some columns of the key's values, which are others for the
  // next key.
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

  // scores_[key][lane], unscaled, of `count` keys from `first` on. The first panel brings the keys
  // and asks for the next ones.
  void score(int64_t panel, int64_t first, int64_t count) {
    const char* query = query_ + panel * steps_ * kPanel * 4;
    const int64_t whole = round_up(count, kRows);
    for (int64_t near = 0; near < whole; near += kNearKeys) {
      const int64_t last = least(near + kNearKeys, whole);
      if (panel == 0) {
        take_keys(first, count, near, last);
        pack_last_columns(near, last);
        prefetch_.until(first + last + kNearKeys);
      }
      for (int64_t key = near; key < last; key += kRows) {
        if (panel == 0) {
          score_tile(key, query, Bring(*this, key), AskForKeys<Element>{&prefetch_});
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

  // Scores of the block's `count` keys to weights 2^(score * log2(e) - maximum), in steps along
  // keys: weights_[step][lane]. rescale_ is what a raised maximum does to earlier sums. `seen` keys
  // of the range have been scored. has_rest_ says for which vectors the rest of the weights
  // matters.
  void weigh(int64_t panel, const Partial& partial, int64_t seen, int64_t count) {
    const F32 scale = broadcast(task_.scale * kLog2E);
    // What this block's keys say of all keys: sums of weights, and of squares of weighted values.
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
          // Not fused: of large scores, what the maximum's rounding left off is no small power.
          weight[d] = exp2(subtract(multiply(load(at), scale), now));
          sum = add(sum, weight[d]);
          if (!Step::kRounds) continue;
          squares = multiply_add(multiply(weight[d], broadcast(mean_squares_[key + d])), weight[d],
                                 squares);
          store(at, weight[d]);
        }
        Step::from_vectors(weight, weights + key / kDepth * kPanel * 4);
      }
      store(maximum, now);
      store(total, sum);
      store(rescale_ + v * kLanes, factor);
      if (!Step::kRounds) continue;
      const F32 all_weights = multiply(sum, total_factor);
      const F32 output =
          divide(multiply(squares, square_factor), multiply(all_weights, all_weights));
      has_rest_[v] = reduce_max(max(output, zero())) > kPlainOutput * kPlainOutput;
      if (has_rest_[v]) pack_rest(v, count);
    }
  }

  // What rounding left off the weights of a vector of heads.
  void pack_rest(int v, int64_t count) {
    const float* weights = scores_ + v * kLanes;
    char* rest = rest_ + v * kLanes * 4;
    for (int64_t key = 0; key < count; key += kDepth) {
      F32 weight[2] = {load(weights + key * kPanel), zero()};
      if (key + 1 < count) weight[1] = load(weights + (key + 1) * kPanel);
      Step::from_rest(weight, rest + key / kDepth * kPanel * 4);
    }
  }

  // sums[panel][column][lane] = sums * rescale_ + values^T weights; the first block's have no
  // sums before them.
  void add_values(int64_t panel, const Partial& partial, int64_t count, bool is_first) {
    constexpr int kTiles = static_cast<int>((kGroup + kRows - 1) / kRows);
    float* sums = partial.sums + panel * groups_ * kGroup * kPanel;
    const char* values = values_;
    const int64_t steps = steps_of<Operand>(count);
    bool all_have_rest = Step::kRounds;
    for (int v = 0; v < kVectors; ++v) all_have_rest = all_have_rest && has_rest_[v];
    for (int64_t group = 0; group < groups_; ++group) {
      if (all_have_rest) {
        add_group<kTiles, 0, true>(values, steps, sums, is_first);
      } else {
        add_group<kTiles, 0, false>(values, steps, sums, is_first);
        if constexpr (Step::kRounds) add_rest(values, steps, sums);
      }
      values += kGroupStride;
      sums += kGroup * kPanel;
    }
  }

  // kGroup columns in tiles as even as possible, from column kFirst on.
  template <int kTiles, int kFirst, bool kWithRest>
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
    if constexpr (kWithRest) {
      multiply_tile<Operand, kTile, kVectors, kGroupBytes>(c, rows, rest_, kPanel * 4, steps);
    }
    store_tile(c, sums + kFirst * kPanel, kPanel);
    if constexpr (kTiles > 1) {
      add_group<kTiles - 1, kFirst + kTile, kWithRest>(values, steps, sums, is_first);
    }
  }

  // Adds what the rest of the weights gives, where only some vectors of heads have one: all columns
  // of a group for one vector. The same bits as add_group's.
  void add_rest(const char* values, int64_t steps, float* sums) const {
    for (int v = 0; v < kVectors; ++v) {
      if (!has_rest_[v]) continue;
      const char* rows[kGroup];
      F32 c[kGroup][1];
      for (int r = 0; r < kGroup; ++r) rows[r] = values + r * 4;
      load_tile(c, sums + v * kLanes, kPanel);
      multiply_tile<Operand, kGroup, 1, kGroupBytes>(c, rows, rest_ + v * kLanes * 4, kPanel * 4,
                                                     steps);
      store_tile(c, sums + v * kLanes, kPanel);
    }
  }

  // Adds to `into` the keys of `from`, which follow its own.
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

  // The sums over their totals, turned back into rows of heads.
  void write(const Partial& partial) const {
    for (int64_t head = 0; head < task_.heads; head += kLanes) {
      const float* sums = partial.sums + head / kPanel * groups_ * kGroup * kPanel + head % kPanel;
      const F32 factor = divide(broadcast(1.0f), load(partial.total + head));
      auto* out = static_cast<Element*>(task_.out) + head * task_.out_head_stride;
      const int64_t heads = least(kLanes, task_.heads - head);
      for (int64_t column = 0; column < task_.latent; column += kLanes) {
        // The next heads' rows, or their stores would wait for memory.
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

  const AttendTask& task_;
  bool in_place_;
  int64_t panels_;
  int64_t latent_steps_;
  int64_t steps_;
  int64_t groups_;
  PrefetchKeys<Element> prefetch_;
  char* query_;
  char* zeros_;
  char* keys_;
  char* values_;
  float* scores_;
  char* weights_;
  char* rest_;
  float* rescale_;
  float* mean_squares_;
  int64_t partial_bytes_;
  int64_t bytes_;
  // Of a block's keys.
  const char* latent_[kKeys + kRows];
  const char* rope_[kKeys + kRows];
  bool has_rest_[kVectors] = {};
};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
