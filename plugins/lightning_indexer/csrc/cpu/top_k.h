// Top-k: the positions of the highest ranks, in order. Find a threshold, keep the ranks that reach
// it, sort these.
//
// A long row is filtered by a threshold from a sample first, so that the search for the exact one
// reads little. Samples and searches decide only how many ranks are left to sort, never which are
// selected: every rank that reaches a threshold is kept, and a threshold that too few ranks reach
// is lowered.
#pragma once

#include "indexer_kernels.h"
#include "score.h"
#include "sort_network.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

inline constexpr int64_t kLargestSample = 512;
// Rows longer than this are filtered by a sampled threshold first.
inline constexpr int64_t kShortRow = 8192;
// After this many probes by interpolation, one that halves the range.
inline constexpr int kProbesToHalf = 4;

// Above this many, and where the network's steps are too coarse, radix sort is used.
inline constexpr int64_t kMostInNetwork = 8192;
// Few enough that rounding a float cannot add a step.
inline constexpr int kMostStepBits = 22;
// Bits of a digit of the radix sort: more bits need fewer passes, but a larger table of counts.
inline constexpr int kMostDigitBits = 11;
inline constexpr int64_t kFewPairs = 768;

// Ranks and their positions, in ascending order of position.
struct Candidates {
  int32_t* ranks;
  int32_t* positions;
  int64_t count;
};

// Two sets of candidates, and the memory to sort them.
struct SelectScratch {
  Candidates first;
  Candidates second;
  uint64_t* pairs;
  uint64_t* spare;  // the memory of `first` again
  int32_t* words;   // the memory of `pairs` again

  SelectScratch(char* memory, int64_t count)
      : first(candidates(memory, count, 0)),
        second(candidates(memory, count, 2)),
        pairs(reinterpret_cast<uint64_t*>(memory + 4 * capacity(count) * 4)),
        spare(reinterpret_cast<uint64_t*>(memory)),
        words(reinterpret_cast<int32_t*>(pairs)) {}

  // Length of an array for `count` ranks: two of them hold network_size(count) numbers.
  static int64_t capacity(int64_t count) {
    const int64_t least = count < kSmallestNetwork ? kSmallestNetwork : count;
    return align((least + kLanes) * 4) / 4;
  }
  static int64_t bytes(int64_t count) { return capacity(count) * 6 * 4; }

 private:
  static Candidates candidates(char* memory, int64_t count, int64_t array) {
    int32_t* ranks = reinterpret_cast<int32_t*>(memory) + array * capacity(count);
    return {ranks, ranks + capacity(count), 0};
  }
};

inline int64_t select_scratch_bytes(int64_t count) { return SelectScratch::bytes(count); }

inline int64_t square_root(int64_t x) {
  int64_t root = 0;
  while ((root + 1) * (root + 1) <= x) ++root;
  return root;
}

// A sorted sample of the ranks, at regular distances.
class Sample {
 public:
  Sample(const int32_t* ranks, int64_t count)
      : count_(count),
        size_(count < 4096    ? 128
              : count < 32768 ? 256
                              : kLargestSample) {
    if (count <= size_) size_ = 0;
    if (size_ == 0) return;
    // A shift: divisions would take longer than the sort.
    const int shift = __builtin_ctzll(static_cast<uint64_t>(2 * size_));
    for (int64_t i = 0; i < size_; ++i) sorted_[i] = ranks[((2 * i + 1) * count) >> shift];
    sort_network(sorted_, size_);
  }

  // A rank that probably more than `limit` of the ranks reach if `margin`, in standard deviations
  // of the sample, is positive, and fewer if it is negative.
  int32_t threshold(int64_t limit, int64_t margin) const {
    if (size_ == 0) return margin < 0 ? INT32_MAX : INT32_MIN;
    const int64_t expected = limit * size_ / count_;
    const int64_t variance = expected * (size_ - expected) / size_;
    const int64_t order = expected + margin * (square_root(variance) + 1);
    if (order < 0) return INT32_MAX;
    if (order >= size_) return INT32_MIN;
    return sorted_[network_index(size_ - 1 - order, size_)];
  }

 private:
  int64_t count_;
  int64_t size_;
  alignas(kAlignment) int32_t sorted_[kLargestSample];
};

inline float score_of(int32_t rank) {
  return float_from_bits(static_cast<uint32_t>(rank ^ ((rank >> 31) & INT32_MAX)));
}

// How many of the ranks reach `threshold`.
inline int64_t count_from(const int32_t* ranks, int64_t count, int32_t threshold) {
  // Independent sums, so that additions overlap.
  constexpr int kSums = 4;
  Integers sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * kLanes <= count; i += kSums * kLanes) {
    unroll<kSums>([&](int s) CUSTOM_PYPTO_INLINE_LAMBDA {
      Integers x;
      __builtin_memcpy(&x, ranks + i + s * kLanes, sizeof x);
      sums[s] -= x >= threshold;
    });
  }
  const Integers all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  int64_t reached = 0;
  for (int lane = 0; lane < kLanes; ++lane) reached += all[lane];
  for (; i < count; ++i) reached += ranks[i] >= threshold;
  return reached;
}

// A threshold, and how many ranks reach it.
struct Reached {
  int32_t threshold;
  int64_t count;
};

// A threshold that at least `limit` of the `count` ranks reach, and at most `most` unless the
// excess is all equal to it.
inline Reached find_threshold(const int32_t* ranks, int64_t count, int64_t limit, int64_t most) {
  Reached low{INT32_MIN, count};
  Reached high{INT32_MAX, 0};  // no score's rank
  if (count <= most) return low;
  const Sample sample(ranks, count);
  int32_t probe = sample.threshold(limit, 2);
  for (int probes = 1; low.count > most && int64_t{high.threshold} - low.threshold > 1; ++probes) {
    const int64_t range = int64_t{high.threshold} - low.threshold;
    if (probe <= low.threshold || probe >= high.threshold) {
      probe = static_cast<int32_t>(low.threshold + range / 2);
    }
    const Reached at{probe, count_from(ranks, count, probe)};
    (at.count >= limit ? low : high) = at;
    if (probes == 1) {
      probe = sample.threshold(limit, -2);
    } else if (probes % kProbesToHalf == 0) {
      probe = low.threshold;
    } else {
      // Interpolates as if scores were evenly spread between the two.
      const float part = static_cast<float>(low.count - (limit + most) / 2) /
                         static_cast<float>(low.count - high.count);
      const float bottom = score_of(low.threshold);
      probe = rank_of(bottom + (score_of(high.threshold) - bottom) * part);
    }
  }
  return low;
}

// Writes the ranks that reach `threshold`, and their positions, to `candidates`; returns their
// number.
inline int64_t keep_from(const int32_t* ranks, int64_t count, int32_t threshold,
                         Candidates& candidates) {
  int64_t kept = 0;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    kept += keep_at_least(ranks + i, threshold, static_cast<int32_t>(i), candidates.ranks + kept,
                          candidates.positions + kept);
  }
  for (; i < count; ++i) {
    if (ranks[i] < threshold) continue;
    candidates.ranks[kept] = ranks[i];
    candidates.positions[kept++] = static_cast<int32_t>(i);
  }
  return kept;
}

// Keeps at least `limit` ranks, the highest, and probably few more.
inline void keep_sampled(const int32_t* ranks, int64_t count, int64_t limit,
                         Candidates& candidates) {
  const Sample sample(ranks, count);
  for (int64_t margin = 3; margin <= 12; margin *= 4) {
    candidates.count = keep_from(ranks, count, sample.threshold(limit, margin), candidates);
    if (candidates.count >= limit) return;
  }
  candidates.count = keep_from(ranks, count, INT32_MIN, candidates);
}

// Keeps, in place, the candidates above `threshold` and the first `equals` of those equal to it.
inline void keep_above(int32_t threshold, int64_t equals, Candidates& candidates) {
  int64_t kept = 0;
  for (int64_t i = 0; i < candidates.count; ++i) {
    const int32_t rank = candidates.ranks[i];
    const bool keep = rank > threshold || (rank == threshold && equals > 0);
    equals -= rank == threshold;
    candidates.ranks[kept] = rank;
    candidates.positions[kept] = candidates.positions[i];
    kept += keep;
  }
  candidates.count = kept;
}

// Sorts pairs from `from` to `to`, stably, by `digit_bits` bits from bit `shift`.
inline void sort_digit(const uint64_t* from, uint64_t* to, int64_t count, int shift,
                       int digit_bits) {
  const uint64_t mask = (uint64_t{1} << digit_bits) - 1;
  uint32_t next[1 << kMostDigitBits];
  __builtin_memset(next, 0, (mask + 1) * sizeof next[0]);
  for (int64_t i = 0; i < count; ++i) ++next[from[i] >> shift & mask];
  uint32_t start = 0;
  for (uint64_t digit = 0; digit <= mask; ++digit) {
    const uint32_t size = next[digit];
    next[digit] = start;
    start += size;
  }
  for (int64_t i = 0; i < count; ++i) to[next[from[i] >> shift & mask]++] = from[i];
}

// The lowest and the highest of the ranks.
struct Spread {
  int32_t lowest = INT32_MAX;
  int32_t highest = INT32_MIN;

  explicit Spread(const Candidates& candidates) {
    for (int64_t i = 0; i < candidates.count; ++i) {
      const int32_t rank = candidates.ranks[i];
      lowest = rank < lowest ? rank : lowest;
      highest = rank > highest ? rank : highest;
    }
  }
};

// Whether words have the same step, where `index_mask` are the other bits.
inline bool is_same_step(int32_t a, int32_t b, uint32_t index_mask) {
  return (static_cast<uint32_t>(a) | index_mask) == (static_cast<uint32_t>(b) | index_mask);
}

// A sorted network of words: a word is a step, and the position of a rank in its low bits. The
// padding's step is the highest, and only its.
struct SortedWords {
  int32_t* words;
  int64_t size;
  uint32_t index_mask;
  const int32_t* ranks;  // of the positions
  int64_t moves_left;    // of sort_steps()

  int64_t rows() const { return size / kLanes; }

  // The word at a row and lane is that at the place lane * rows() + row.
  int32_t& at(int64_t row, int64_t lane) const { return words[row * kLanes + lane]; }
  int32_t& at(int64_t place) const { return words[network_index(place, size)]; }

  static bool is_padding(int32_t word) { return word == INT32_MAX; }

  // Inserts the word at `place` before the words of its step whose ranks are lower.
  __attribute__((noinline, cold)) void insert(int64_t place) {
    const int32_t word = at(place);
    const int32_t rank = ranks[static_cast<uint32_t>(word) & index_mask];
    for (; place > 0; --place, --moves_left) {
      const int32_t before = at(place - 1);
      if (!is_same_step(word, before, index_mask)) break;
      if (ranks[static_cast<uint32_t>(before) & index_mask] >= rank) break;
      at(place) = before;
    }
    at(place) = word;
  }

  // Each lane is -1 if any of rows [first, last) has a word with the step of the word above it.
  Integers find_ties(int64_t first, int64_t last) const {
    const Integers mask = Integers{} + static_cast<int32_t>(index_mask);
    Integers above, tied = {};
    __builtin_memcpy(&above, &at(first - 1, 0), sizeof above);
    for (int64_t row = first; row < last; ++row) {
      Integers x;
      __builtin_memcpy(&x, &at(row, 0), sizeof x);
      tied |= (x | mask) == (above | mask);
      above = x;
    }
    return tied;
  }

  // Words of one step are adjacent, in order of position. Sorts them by rank. Returns false,
  // unfinished, where that would take too many moves.
  bool sort_steps() {
    // Ties are rare: rows are looked at together.
    for (int64_t first = 1, last; first < rows(); first = last) {
      last = first + 2 * kGroup < rows() ? first + 2 * kGroup : rows();
      const Integers tied = find_ties(first, last);
      if (!is_any_set(tied)) continue;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        if (tied[lane] == 0) continue;
        for (int64_t row = first; row < last; ++row) {
          const int32_t word = at(row, lane);
          if (!is_same_step(word, at(row - 1, lane), index_mask) || is_padding(word)) continue;
          insert(lane * rows() + row);
          if (moves_left < 0) return false;
        }
      }
    }
    // The last words of a column and the first ones of the next. Places that an earlier run of ties
    // has covered are skipped.
    int64_t place = 0;
    for (int64_t lane = 1; lane < kLanes; ++lane) {
      if (lane * rows() < place) continue;
      for (place = lane * rows(); place < size; ++place) {
        const int32_t word = at(place);
        if (!is_same_step(word, at(place - 1), index_mask) || is_padding(word)) break;
        insert(place);
        if (moves_left < 0) return false;
      }
    }
    return true;
  }

  // The first `limit` positions, in order.
  void read_positions(int64_t limit, int32_t* out) const {
    const int32_t mask = static_cast<int32_t>(index_mask);
    int64_t row = 0;
    for (; row + kLanes <= rows(); row += kLanes) {
      F32 block[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        block[i] = load(reinterpret_cast<const float*>(&at(row + i, 0)));
      }
      transpose(block);
      for (int lane = 0; lane < kLanes; ++lane) {
        const Integers x = reinterpret_cast<Integers>(block[lane]) & mask;
        const int64_t place = lane * rows() + row;
        if (place + kLanes <= limit) {
          __builtin_memcpy(out + place, &x, sizeof x);
        } else {
          for (int64_t i = 0; place + i < limit; ++i) out[place + i] = x[i];
        }
      }
    }
    for (int64_t place = 0; row < rows() && place < limit; ++place) out[place] = at(place) & mask;
  }
};

// Sorts words of distance and position: the distance of a score from the highest one, quantised to
// the bits that positions in `ranks`, of which there are `ranks_count`, leave free. Then sorts the
// words of equal distance by rank. Returns false, with `out` not written, where too many distances
// are equal, as with an infinite score or an outlier.
inline bool network_sort(const int32_t* ranks, int64_t ranks_count, const Candidates& candidates,
                         const Spread& spread, int64_t limit, int32_t* words, int32_t* out) {
  const int64_t count = candidates.count;
  if (count > kMostInNetwork) return false;
  const int64_t size = network_size(count);
  const int index_bits = 64 - __builtin_clzll(static_cast<uint64_t>((ranks_count - 1) | 1));
  const int step_bits = 32 - index_bits < kMostStepBits ? 32 - index_bits : kMostStepBits;
  // The step after them is the padding's.
  const int32_t most_steps = (1 << step_bits) - 2;
  const float highest = score_of(spread.highest);
  const float scale = static_cast<float>(most_steps) / (highest - score_of(spread.lowest));
  if (!(scale > 0.0f && scale < __FLT_MAX__)) return false;
  const int32_t middle = most_steps / 2 + 1;
  for (int64_t i = 0; i < count; ++i) {
    const float distance = (highest - score_of(candidates.ranks[i])) * scale;
    const int32_t step = static_cast<int32_t>(distance) - middle;
    words[i] =
        static_cast<int32_t>(static_cast<uint32_t>(step) << index_bits) | candidates.positions[i];
  }
  for (int64_t i = count; i < size; ++i) words[i] = INT32_MAX;
  sort_network(words, size);

  const uint32_t index_mask = (uint32_t{1} << index_bits) - 1;
  SortedWords sorted{words, size, index_mask, ranks, 4 * count};
  if (!sorted.sort_steps()) return false;
  sorted.read_positions(limit, out);
  return true;
}

// Radix sort, for any ranks.
inline void radix_sort(const Candidates& candidates, const Spread& spread, int64_t limit,
                       uint64_t* pairs, uint64_t* spare, int32_t* out) {
  const int64_t count = candidates.count;
  if (spread.lowest == spread.highest) {
    __builtin_memcpy(out, candidates.positions, static_cast<size_t>(limit) * sizeof *out);
    return;
  }
  // A pair is the distance from the highest rank, of which only some low bits differ, and the
  // position; ascending order.
  const uint32_t top = static_cast<uint32_t>(spread.highest);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t distance = top - static_cast<uint32_t>(candidates.ranks[i]);
    pairs[i] =
        static_cast<uint64_t>(distance) << 32 | static_cast<uint32_t>(candidates.positions[i]);
  }
  const int bits = 32 - __builtin_clz(top - static_cast<uint32_t>(spread.lowest));
  const int widest = count < kFewPairs ? 8 : kMostDigitBits;
  const int passes = (bits + widest - 1) / widest;
  for (int p = 0; p < passes; ++p) {
    const int begin = bits * p / passes;
    const int end = bits * (p + 1) / passes;
    sort_digit(pairs, spare, count, 32 + begin, end - begin);
    uint64_t* const sorted = spare;
    spare = pairs;
    pairs = sorted;
  }
  for (int64_t i = 0; i < limit; ++i) {
    out[i] = static_cast<int32_t>(static_cast<uint32_t>(pairs[i]));
  }
}

inline void select(const int32_t* ranks, int64_t count, int64_t limit, char* memory, int32_t* out) {
  const int64_t selected = count < limit ? count : limit;
  if (selected > 0) {
    SelectScratch scratch(memory, count);
    Candidates& candidates = scratch.second;
    const bool is_long = count > kShortRow;
    if (is_long) {
      keep_sampled(ranks, count, selected, scratch.first);
      ranks = scratch.first.ranks;
      count = scratch.first.count;
    }
    const auto restore_positions = [&](int32_t* positions, int64_t size) {
      if (!is_long) return;
      for (int64_t i = 0; i < size; ++i) {
        positions[i] = scratch.first.positions[positions[i]];
      }
    };
    const int64_t most = network_size(selected);
    const Reached reached = find_threshold(ranks, count, selected, most);
    candidates.count = keep_from(ranks, count, reached.threshold, candidates);
    if (candidates.count > most) {
      const int64_t above = count_from(candidates.ranks, candidates.count, reached.threshold + 1);
      keep_above(reached.threshold, selected - above, candidates);
    }
    const Spread spread(candidates);
    if (network_sort(ranks, count, candidates, spread, selected, scratch.words, out)) {
      restore_positions(out, selected);
    } else {
      restore_positions(candidates.positions, candidates.count);
      radix_sort(candidates, spread, selected, scratch.pairs, scratch.spare, out);
    }
  }
  for (int64_t i = selected; i < limit; ++i) out[i] = -1;
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
