// Attention of one query token over selected keys: scores, online softmax and weighted sum, block
// of keys by block of keys. Heads are the lanes, so maxima, exponentials and rescaling are
// vertical; the keys and, transposed, the values are the rows of the tile. Include after
// custom_pypto/cpu/<level>.h.
//
// A panel's result depends on that panel and the keys alone, bit for bit.
//
// Where the operand rounds weights to bf16, that costs 1.1e-3 of a weight (rms). Many small errors
// average out like the values themselves, so an output is off by as large a part of its row's rms:
// too much for outputs near zero, unless the rms is small. So when the outputs are estimated to be
// larger than kPlainOutput, the weights' rest is multiplied in too.
#pragma once

#include <custom_pypto/cpu/exp.h>

#include "kernels.h"
#include "operands.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL {
namespace {

using custom_pypto_sparse_attention::AttendTask;

template <class Element>
class Attend {
 public:
  static void run(const AttendTask& task, char* scratch) { Attend(task, scratch).run(); }

  static int64_t scratch_bytes(int64_t heads, int64_t latent, int64_t rope) {
    AttendTask task = {};
    task.heads = heads;
    task.latent = latent;
    task.rope = rope;
    return Attend(task, nullptr).bytes_;
  }

 private:
  using Operand = typename OperandOf<Element>::Type;
  using Stored = typename OperandOf<Element>::Stored;
  using Step = Steps<Element, Operand>;
  using StoredStep = Steps<Stored, Operand>;
  static constexpr int64_t kDepth = Operand::kDepth;
  // Keys of a block: they, their values, scores and weights fit the second-level cache.
  static constexpr int64_t kKeys = 192;
  // Steps of the score's loop for which a query panel fits the first-level cache.
  static constexpr int64_t kChunk = 96;
  // The rms of outputs up to which bf16 weights are good for an absolute error of 1e-4.
  static constexpr float kPlainOutput = 0.04f;
  // Every so manieth key of a block is looked at to estimate the size of values.
  static constexpr int64_t kSampleKeys = 16;
  // Value columns that are packed side by side: a cache line of steps.
  static constexpr int64_t kGroup = 16;
  static constexpr int64_t kGroupBytes = kGroup * 4;

  Attend(const AttendTask& task, char* scratch)
      : task_(task),
        panels_(divide_up(task.heads, kPanel)),
        latent_steps_(steps_of<Operand>(task.latent)),
        steps_(latent_steps_ + steps_of<Operand>(task.rope)),
        groups_(divide_up(task.latent, kGroup)) {
    Pieces pieces(scratch);
    query_ = pieces.take(panels_ * steps_ * kPanel * 4);
    keys_ = pieces.take((kKeys + kRows) * steps_ * 4);
    values_ = pieces.take(groups_ * (kKeys / kDepth) * kGroupBytes);
    scores_ = pieces.take<float>((kKeys + kRows) * kPanel * 4);
    weights_ = pieces.take(kKeys / kDepth * kPanel * 4);
    rest_ = pieces.take(Step::kRounds ? kKeys / kDepth * kPanel * 4 : 0);
    sums_ = pieces.take<float>(panels_ * groups_ * kGroup * kPanel * 4);
    maximum_ = pieces.take<float>(panels_ * kPanel * 4);
    total_ = pieces.take<float>(panels_ * kPanel * 4);
    rescale_ = pieces.take<float>(kPanel * 4);
    turned_ = pieces.take<float>(kGroup * kPanel * 4);
    bytes_ = pieces.taken();
  }

  void run() {
    pack_query();
    for (int64_t i = 0; i < panels_ * kPanel; ++i) {
      // Not -inf: until a key has another score than that, exp(-inf - maximum) must be 0, not NaN.
      maximum_[i] = -__FLT_MAX__;
      total_[i] = 0.0f;
    }
    __builtin_memset(sums_, 0, static_cast<size_t>(panels_ * groups_ * kGroup * kPanel) * 4);
    for (int64_t first = 0; first < task_.count; first += kKeys) {
      const int64_t count = least(kKeys, task_.count - first);
      gather(first, count);
      if (Step::kRounds) mean_square_ = mean_square_of_values(first, count);
      for (int64_t panel = 0; panel < panels_; ++panel) {
        score(panel, count, panel == 0 ? first + count : task_.count);
        const bool with_rest = weigh(panel, first, count);
        add_values(panel, count, with_rest);
      }
    }
    for (int64_t panel = 0; panel < panels_; ++panel) write(panel);
  }

  // The query, step by step, heads contiguous: [panel][step][kPanel].
  void pack_query() {
    for (int64_t panel = 0; panel < panels_; ++panel) {
      const int64_t heads = least(kPanel, task_.heads - panel * kPanel);
      const auto* latent =
          static_cast<const Element*>(task_.query) + panel * kPanel * task_.query_head_stride;
      const auto* rope = static_cast<const Element*>(task_.query_rope) +
                         panel * kPanel * task_.query_rope_head_stride;
      for (int64_t head = 0; head < heads; ++head) {
        take_row(latent + head * task_.query_head_stride,
                 rope + head * task_.query_rope_head_stride, head);
      }
      Step::zeros((kPanel - heads) * steps_, key_row(heads));
      const uint32_t* rows = reinterpret_cast<const uint32_t*>(keys_);
      uint32_t* out = reinterpret_cast<uint32_t*>(query_) + panel * steps_ * kPanel;
      for (int64_t step = 0; step < steps_; ++step, out += kPanel) {
        for (int64_t lane = 0; lane < kPanel; ++lane) out[lane] = rows[lane * steps_ + step];
      }
    }
  }

  char* key_row(int64_t key) const { return keys_ + key * steps_ * 4; }

  void take_row(const Element* latent, const Element* rope, int64_t key) {
    Step::from_row(latent, task_.latent, key_row(key));
    Step::from_row(rope, task_.rope, key_row(key) + latent_steps_ * 4);
  }

  // Brings a block's keys into steps, [key][step], and the values too: [group][step][kGroup].
  void gather(int64_t first, int64_t count) {
    for (int64_t key = 0; key < count; ++key) {
      take_row(static_cast<const Element*>(task_.latent_rows[first + key]),
               static_cast<const Element*>(task_.rope_rows[first + key]), key);
    }
    // So that tiles of keys, and steps of values, are whole.
    Step::zeros((round_up(count, kRows) - count) * steps_, key_row(count));
    // Two groups at a time: a cache line of bf16 numbers.
    const int64_t group_bytes = kKeys / kDepth * kGroupBytes;
    int64_t column = 0;
    for (; column + 2 * kGroup <= task_.latent; column += 2 * kGroup) {
      char* out = values_ + column / kGroup * group_bytes;
      for (int64_t key = 0; key < count; key += kDepth, out += kGroupBytes) {
        const Stored* rows[2] = {stored_row(key) + column, stored_row(key + kDepth - 1) + column};
        StoredStep::from_32_columns(rows, out, out + group_bytes);
      }
    }
    for (; column < task_.latent; column += kGroup) {
      const int64_t columns = least(kGroup, task_.latent - column);
      char* out = values_ + column / kGroup * group_bytes;
      for (int64_t key = 0; key < count; key += kDepth, out += kGroupBytes) {
        const Stored* rows[2] = {stored_row(key) + column, stored_row(key + kDepth - 1) + column};
        StoredStep::from_rows(rows, 1, columns, out);
        StoredStep::zeros(kGroup - columns, out + columns * 4);
      }
    }
  }

  const Stored* stored_row(int64_t key) const {
    return reinterpret_cast<const Stored*>(key_row(key));
  }

  // Estimated from some keys of the block.
  float mean_square_of_values(int64_t first, int64_t count) const {
    F32 sum = zero();
    int64_t numbers = 0;
    for (int64_t key = first; key < first + count; key += kSampleKeys) {
      const auto* latent = static_cast<const Element*>(task_.latent_rows[key]);
      for (int64_t i = 0; i + kLanes <= task_.latent; i += kLanes, numbers += kLanes) {
        const F32 value = load(latent + i);
        sum = multiply_add(value, value, sum);
      }
    }
    return numbers == 0 ? 1.0f : reduce_add(sum) / static_cast<float>(numbers);
  }

  // scores_[key][lane], unscaled. Meanwhile asks for the keys from `next` on.
  void score(int64_t panel, int64_t count, int64_t next) {
    const char* query = query_ + panel * steps_ * kPanel * 4;
    for (int64_t step = 0; step < steps_; step += kChunk) {
      const int64_t steps = least(kChunk, steps_ - step);
      for (int64_t key = 0; key < count; key += kRows) {
        prefetch(next + key, step, steps);
        float* scores = scores_ + key * kPanel;
        F32 c[kRows][kVectors];
        for (int r = 0; r < kRows; ++r) {
          for (int v = 0; v < kVectors; ++v) {
            c[r][v] = step == 0 ? zero() : load(scores + r * kPanel + v * kLanes);
          }
        }
        const char* rows[kRows];
        for (int r = 0; r < kRows; ++r) rows[r] = keys_ + ((key + r) * steps_ + step) * 4;
        multiply_tile<Operand, kRows, kVectors>(c, rows, query + step * kPanel * 4, kPanel * 4,
                                                steps);
        for (int r = 0; r < kRows; ++r) {
          for (int v = 0; v < kVectors; ++v) store(scores + r * kPanel + v * kLanes, c[r][v]);
        }
      }
    }
  }

  // The part of kRows keys from `key` on that [step, step + steps) stands for.
  void prefetch(int64_t key, int64_t step, int64_t steps) const {
    const int64_t end = least(key + kRows, task_.count);
    const int64_t bytes = kDepth * static_cast<int64_t>(sizeof(Element));
    for (; key < end; ++key) {
      const char* row = static_cast<const char*>(task_.latent_rows[key]) + step * bytes;
      const int64_t latent = least(steps, latent_steps_ - step) * bytes;
      for (int64_t byte = 0; byte < latent; byte += 64) __builtin_prefetch(row + byte, 0, 2);
      if (step != 0) continue;
      const char* rope = static_cast<const char*>(task_.rope_rows[key]);
      const int64_t rope_bytes = task_.rope * static_cast<int64_t>(sizeof(Element));
      for (int64_t byte = 0; byte < rope_bytes; byte += 64) __builtin_prefetch(rope + byte, 0, 2);
    }
  }

  // Scores to weights exp(score - maximum); rescale_ is what a raised maximum does to earlier sums.
  // Returns whether the rest of the weights matters.
  bool weigh(int64_t panel, int64_t first, int64_t count) {
    const F32 scale = broadcast(task_.scale);
    // What this block's keys say of all keys: sums of weights and of their squares.
    const float all = static_cast<float>(task_.count);
    const F32 total_factor = broadcast(all / static_cast<float>(first + count));
    const F32 square_factor = broadcast(mean_square_ * all / static_cast<float>(count));
    F32 largest = zero();
    for (int v = 0; v < kVectors; ++v) {
      float* maximum = maximum_ + panel * kPanel + v * kLanes;
      float* total = total_ + panel * kPanel + v * kLanes;
      float* scores = scores_ + v * kLanes;
      const F32 before = load(maximum);
      F32 now = before;
      for (int64_t key = 0; key < count; ++key) {
        const F32 scaled = multiply(load(scores + key * kPanel), scale);
        store(scores + key * kPanel, scaled);
        now = max(scaled, now);
      }
      const F32 factor = exp(subtract(before, now));
      F32 sum = multiply(load(total), factor);
      F32 squares = zero();
      for (int64_t key = 0; key < count; ++key) {
        const F32 weight = exp(subtract(load(scores + key * kPanel), now));
        sum = add(sum, weight);
        squares = multiply_add(weight, weight, squares);
        store(scores + key * kPanel, weight);
      }
      store(maximum, now);
      store(total, sum);
      store(rescale_ + v * kLanes, factor);
      const F32 all_weights = multiply(sum, total_factor);
      const F32 output =
          divide(multiply(squares, square_factor), multiply(all_weights, all_weights));
      largest = max(output, largest);
    }
    const bool with_rest = Step::kRounds && reduce_max(largest) > kPlainOutput * kPlainOutput;
    pack_weights(count, with_rest);
    return with_rest;
  }

  // Weights to steps along keys, [step][lane].
  void pack_weights(int64_t count, bool with_rest) {
    for (int64_t key = 0; key < count; key += kDepth) {
      const int64_t at = key / kDepth * kPanel * 4;
      for (int v = 0; v < kVectors; ++v) {
        F32 weight[2] = {zero(), zero()};
        for (int64_t d = 0; d < least(kDepth, count - key); ++d) {
          weight[d] = load(scores_ + (key + d) * kPanel + v * kLanes);
        }
        Step::from_vectors(weight, weights_ + at + v * kLanes * 4);
        if (with_rest) Step::from_rest(weight, rest_ + at + v * kLanes * 4);
      }
    }
  }

  // sums_[panel][column][lane] = sums_ * rescale_ + values^T weights.
  void add_values(int64_t panel, int64_t count, bool with_rest) {
    constexpr int kTiles = static_cast<int>((kGroup + kRows - 1) / kRows);
    float* sums = sums_ + panel * groups_ * kGroup * kPanel;
    const char* values = values_;
    for (int64_t group = 0; group < groups_; ++group) {
      add_group<kTiles, 0>(values, steps_of<Operand>(count), sums, with_rest);
      values += kKeys / kDepth * kGroupBytes;
      sums += kGroup * kPanel;
    }
  }

  // kGroup columns in tiles as even as possible, from column kFirst on.
  template <int kTiles, int kFirst>
  void add_group(const char* values, int64_t steps, float* sums, bool with_rest) {
    constexpr int kTile = (static_cast<int>(kGroup) - kFirst + kTiles - 1) / kTiles;
    const char* rows[kTile];
    F32 c[kTile][kVectors];
    for (int r = 0; r < kTile; ++r) {
      rows[r] = values + (kFirst + r) * 4;
      for (int v = 0; v < kVectors; ++v) {
        c[r][v] =
            multiply(load(sums + (kFirst + r) * kPanel + v * kLanes), load(rescale_ + v * kLanes));
      }
    }
    multiply_tile<Operand, kTile, kVectors, kGroupBytes>(c, rows, weights_, kPanel * 4, steps);
    if (Step::kRounds && with_rest) {
      multiply_tile<Operand, kTile, kVectors, kGroupBytes>(c, rows, rest_, kPanel * 4, steps);
    }
    for (int r = 0; r < kTile; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        store(sums + (kFirst + r) * kPanel + v * kLanes, c[r][v]);
      }
    }
    if constexpr (kTiles > 1) {
      add_group<kTiles - 1, kFirst + kTile>(values, steps, sums, with_rest);
    }
  }

  // The sums over their totals, turned back into rows of heads.
  void write(int64_t panel) {
    const int64_t heads = least(kPanel, task_.heads - panel * kPanel);
    const float* total = total_ + panel * kPanel;
    const float* sums = sums_ + panel * groups_ * kGroup * kPanel;
    auto* out = static_cast<Element*>(task_.out) + panel * kPanel * task_.out_head_stride;
    for (int64_t group = 0; group < groups_; ++group) {
      const int64_t columns = least(kGroup, task_.latent - group * kGroup);
      for (int64_t head = 0; head < heads; ++head) {
        for (int64_t i = 0; i < kGroup; ++i) {
          turned_[head * kGroup + i] = sums[i * kPanel + head] / total[head];
        }
      }
      for (int64_t head = 0; head < heads; ++head) {
        narrow(turned_ + head * kGroup, columns,
               out + head * task_.out_head_stride + group * kGroup);
      }
      sums += kGroup * kPanel;
    }
    if (task_.log_sum_exp == nullptr) return;
    for (int64_t head = 0; head < heads; ++head) {
      task_.log_sum_exp[panel * kPanel + head] =
          maximum_[panel * kPanel + head] + __builtin_logf(total[head]);
    }
  }

  const AttendTask& task_;
  int64_t panels_;
  int64_t latent_steps_;
  int64_t steps_;
  int64_t groups_;
  char* query_;
  char* keys_;
  char* values_;
  float* scores_;
  char* weights_;
  char* rest_;
  float* sums_;
  float* maximum_;
  float* total_;
  float* rescale_;
  float* turned_;
  float mean_square_ = 0.0f;
  int64_t bytes_;
};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL
