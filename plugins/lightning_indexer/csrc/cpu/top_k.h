// Top-k: the positions of the highest ranks, in order. Find a threshold, keep the ranks that reach
// it, sort these.
//
// A long row is filtered by a threshold from a sample first, so that the search for the exact one
// reads little. Samples and searches decide only how many ranks are left to sort, never which are
// selected: every rank that reaches a threshold is kept, and a threshold that too few ranks reach
// is lowered.
#pragma once

#include "kernels.h"
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
      // As if scores were evenly spread between the two.
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

// Inserts the sorted word at `place`, and its position, before those of lower ranks among the words
// of its step. Returns the distance.
__attribute__((noinline, cold)) int64_t insert_word(const int32_t* ranks, int32_t* words,
                                                    int64_t size, int64_t place,
                                                    int32_t* positions) {
  const int32_t word = words[network_index(place, size)];
  const int32_t position = positions[place];
  int64_t at = place;
  for (; at > 0; --at) {
    const int32_t before = words[network_index(at - 1, size)];
    if (static_cast<uint32_t>(word ^ before) >= static_cast<uint32_t>(size)) break;
    if (ranks[before & (size - 1)] >= ranks[word & (size - 1)]) break;
    words[network_index(at, size)] = before;
    positions[at] = positions[at - 1];
  }
  words[network_index(at, size)] = word;
  positions[at] = position;
  return place - at;
}

// The positions of sorted words. Words of one step are adjacent, in order of position; they are
// sorted by rank here. Returns false, unfinished, where that would take too many moves.
inline bool read_positions(const Candidates& candidates, int32_t* words, int64_t size,
                           int32_t* positions) {
  const int32_t* unsorted = candidates.positions;
  const int64_t count = candidates.count;
  const int64_t rows = size / kLanes;
  const uint32_t index_mask = static_cast<uint32_t>(size - 1);
  int64_t moves_left = 4 * count;
  uint32_t previous = ~static_cast<uint32_t>(words[0]);
  for (int64_t lane = 0, first = 0; first < count; ++lane, first += rows) {
    const int64_t end = count - first < rows ? count - first : rows;
    const int32_t* column = words + lane;
    for (int64_t row = 0; row < end; ++row) {
      const uint32_t word = static_cast<uint32_t>(column[row * kLanes]);
      positions[first + row] = unsorted[word & index_mask];
      const bool same_step = (word ^ previous) <= index_mask;
      previous = word;
      if (__builtin_expect(same_step, 0)) {
        moves_left -= insert_word(candidates.ranks, words, size, first + row, positions);
        if (moves_left < 0) return false;
      }
    }
  }
  return true;
}

// Sorts words of distance and index: the distance of a score from the highest one, quantised to the
// bits that the index leaves free. Then sorts the words of equal distance by rank. Returns false,
// with `out` not written, where too many distances are equal, as with an infinite score or an
// outlier.
inline bool network_sort(const Candidates& candidates, const Spread& spread, int64_t limit,
                         int32_t* words, int32_t* positions, int32_t* out) {
  const int64_t count = candidates.count;
  if (count > kMostInNetwork) return false;
  const int64_t size = network_size(count);
  const int index_bits = __builtin_ctzll(static_cast<uint64_t>(size));
  const int step_bits = 32 - index_bits < kMostStepBits ? 32 - index_bits : kMostStepBits;
  const int32_t most_steps = (1 << step_bits) - 1;
  const float highest = score_of(spread.highest);
  const float scale = static_cast<float>(most_steps) / (highest - score_of(spread.lowest));
  if (!(scale > 0.0f && scale < __FLT_MAX__)) return false;
  const int32_t middle = most_steps / 2 + 1;
  for (int64_t i = 0; i < count; ++i) {
    const float distance = (highest - score_of(candidates.ranks[i])) * scale;
    const int32_t step = static_cast<int32_t>(distance) - middle;
    words[i] =
        static_cast<int32_t>(static_cast<uint32_t>(step) << index_bits) | static_cast<int32_t>(i);
  }
  for (int64_t i = count; i < size; ++i) words[i] = INT32_MAX;
  sort_network(words, size);

  if (!read_positions(candidates, words, size, positions)) return false;
  __builtin_memcpy(out, positions, static_cast<size_t>(limit) * sizeof *out);
  return true;
}

// Radix sort, for any ranks.
inline void radix_sort(const Candidates& candidates, const Spread& spread, int64_t limit,
                       uint64_t* pairs, uint64_t* spare, int32_t* out) {
  const int64_t count = candidates.count;
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

// Writes the positions of the `limit` highest candidates to `out`; overwrites scratch.first.
inline void write_sorted(SelectScratch& scratch, int64_t limit, int32_t* out) {
  const Candidates& candidates = scratch.second;
  const Spread spread(candidates);
  if (spread.lowest == spread.highest) {
    __builtin_memcpy(out, candidates.positions, static_cast<size_t>(limit) * sizeof *out);
    return;
  }
  if (network_sort(candidates, spread, limit, scratch.words, scratch.first.positions, out)) return;
  radix_sort(candidates, spread, limit, scratch.pairs, scratch.spare, out);
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
    const int64_t most = network_size(selected);
    const Reached reached = find_threshold(ranks, count, selected, most);
    candidates.count = keep_from(ranks, count, reached.threshold, candidates);
    if (is_long) {
      for (int64_t i = 0; i < candidates.count; ++i) {
        candidates.positions[i] = scratch.first.positions[candidates.positions[i]];
      }
    }
    if (candidates.count > most) {
      const int64_t above = count_from(candidates.ranks, candidates.count, reached.threshold + 1);
      keep_above(reached.threshold, selected - above, candidates);
    }
    write_sorted(scratch, selected, out);
  }
  for (int64_t i = selected; i < limit; ++i) out[i] = -1;
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
