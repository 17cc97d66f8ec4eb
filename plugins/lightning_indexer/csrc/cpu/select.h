// The positions of the highest ranks, in order: threshold from a sample, one pass that keeps what
// reaches it, a stable radix sort of what is left.
//
// The sample decides only how much is left to sort, never what is selected: everything that reaches
// the threshold is kept, and when that is too few the threshold is lowered.
#pragma once

#include "kernels.h"
#include "score.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL {
namespace {

inline constexpr int64_t kLargestSample = 512;

// Digits of the radix sort: wider ones mean fewer passes, but a table of counts to clear and sum.
inline constexpr int kMostDigitBits = 11;
inline constexpr int64_t kFewPairs = 768;

// Ranks and their positions in ascending order of position, and room to sort them.
struct Candidates {
  int32_t* ranks;
  int32_t* positions;
  uint64_t* sorted;  // as many
  uint64_t* spare;   // the memory of ranks and positions again
  int64_t count;
};

inline int64_t candidate_room(int64_t count) { return align((count + kLanes) * 4) / 4; }

inline int64_t select_scratch_bytes(int64_t count) { return candidate_room(count) * 16; }

inline Candidates candidates_in(char* scratch, int64_t count) {
  const int64_t room = candidate_room(count);
  int32_t* ranks = reinterpret_cast<int32_t*>(scratch);
  uint64_t* spare = reinterpret_cast<uint64_t*>(scratch);
  return {ranks, ranks + room, spare + room, spare, 0};
}

inline int64_t square_root(int64_t x) {
  int64_t root = 0;
  while ((root + 1) * (root + 1) <= x) ++root;
  return root;
}

// A rank that probably about `limit` and hardly ever fewer of `count` ranks reach. `caution`, in
// standard deviations of the sample, makes "hardly" rarer.
inline int32_t sampled_threshold(const int32_t* ranks, int64_t count, int64_t limit,
                                 int64_t caution) {
  const int64_t sample_size = count < 4096 ? 128 : count < 32768 ? 256 : kLargestSample;
  if (count <= sample_size) return INT32_MIN;
  int32_t sample[kLargestSample];
  for (int64_t i = 0; i < sample_size; ++i)
    sample[i] = ranks[(2 * i + 1) * count / (2 * sample_size)];
  const int64_t expected = limit * sample_size / count;
  const int64_t variance = expected * (sample_size - expected) / sample_size;
  const int64_t order = expected + 1 + caution * (square_root(variance) + 1);
  if (order >= sample_size) return INT32_MIN;
  // The sample's element that `order` others exceed, found by counting: no branch to mispredict.
  int32_t threshold = INT32_MAX;
  for (int64_t i = 0; i < sample_size; ++i) {
    const int32_t x = sample[i];
    int32_t higher = 0;
    for (int64_t j = 0; j < sample_size; ++j) higher += sample[j] > x;
    if (higher <= order && x < threshold) threshold = x;
  }
  return threshold;
}

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

// Fills the candidates from all ranks: at least `limit` of them.
inline void gather(const int32_t* ranks, int64_t count, int64_t limit, Candidates& candidates) {
  candidates.count = 0;
  for (int64_t caution = 3; caution <= 12; caution *= 4) {
    const int32_t threshold = sampled_threshold(ranks, count, limit, caution);
    candidates.count = keep_from(ranks, count, threshold, candidates);
    if (candidates.count >= limit) return;
  }
  candidates.count = keep_from(ranks, count, INT32_MIN, candidates);
}

// Keeps, in place, the candidates above `threshold` and the first `equals` at it.
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

// Drops candidates while many more than `limit` are left, as with scores that are mostly equal.
inline void thin_out(int64_t limit, Candidates& candidates) {
  while (candidates.count > 2 * limit) {
    const int64_t before = candidates.count;
    const int32_t threshold = sampled_threshold(candidates.ranks, before, limit, 3);
    int64_t above = 0;
    int64_t equal = 0;
    for (int64_t i = 0; i < before; ++i) {
      above += candidates.ranks[i] > threshold;
      equal += candidates.ranks[i] == threshold;
    }
    if (above + equal < limit) return;
    keep_above(threshold, above >= limit ? before : limit - above, candidates);
    if (candidates.count == before) return;
  }
}

// Moves pairs from `from` to `to`, stably, into the order of `digit_bits` bits from `shift`.
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

// Sorts pairs, stably, by the bits [low, high) of each; uses `spare`. Returns which of the two
// arrays holds the result.
inline uint64_t* radix_sort(uint64_t* pairs, uint64_t* spare, int64_t count, int low, int high) {
  const int widest = count < kFewPairs ? 8 : kMostDigitBits;
  const int passes = (high - low + widest - 1) / widest;
  for (int p = 0; p < passes; ++p) {
    const int begin = low + (high - low) * p / passes;
    const int end = low + (high - low) * (p + 1) / passes;
    sort_digit(pairs, spare, count, begin, end - begin);
    uint64_t* const sorted = spare;
    spare = pairs;
    pairs = sorted;
  }
  return pairs;
}

// Sorts pairs that are nearly in order. Returns false, pairs half sorted, once that proves wrong.
inline bool insertion_sort(uint64_t* pairs, int64_t count) {
  int64_t moves_left = 4 * count;
  for (int64_t i = 1; i < count; ++i) {
    const uint64_t pair = pairs[i];
    int64_t at = i;
    for (; at > 0 && pairs[at - 1] > pair; --at) pairs[at] = pairs[at - 1];
    pairs[at] = pair;
    moves_left -= i - at;
    if (moves_left < 0) return false;
  }
  return true;
}

// Sorts by descending rank, equal ranks by position, and writes the first `limit` positions.
inline void write_sorted(Candidates& candidates, int64_t limit, int32_t* out) {
  const int64_t count = candidates.count;
  int32_t lowest = INT32_MAX;
  int32_t highest = INT32_MIN;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t rank = candidates.ranks[i];
    lowest = rank < lowest ? rank : lowest;
    highest = rank > highest ? rank : highest;
  }
  // A pair is the distance from the highest rank, of which only some low bits differ, and the
  // position: pairs in ascending order are what is wanted.
  const uint32_t top = static_cast<uint32_t>(highest);
  const uint32_t spread = top - static_cast<uint32_t>(lowest);
  uint64_t* pairs = candidates.sorted;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t distance = top - static_cast<uint32_t>(candidates.ranks[i]);
    pairs[i] =
        static_cast<uint64_t>(distance) << 32 | static_cast<uint32_t>(candidates.positions[i]);
  }
  if (spread != 0) {
    uint64_t* spare = candidates.spare;
    const int high = 64 - __builtin_clz(spread);
    const int coarse = high - 2 * kMostDigitBits;
    // The highest bits nearly always tell all ranks apart.
    const int low = coarse > 32 && count >= kFewPairs ? coarse : 32;
    uint64_t* const sorted = radix_sort(pairs, spare, count, low, high);
    spare = sorted == pairs ? spare : pairs;
    pairs = sorted;
    if (low > 32 && !insertion_sort(pairs, count)) {
      pairs = radix_sort(pairs, spare, count, 32, high);
    }
  }
  for (int64_t i = 0; i < limit; ++i)
    out[i] = static_cast<int32_t>(static_cast<uint32_t>(pairs[i]));
}

inline void select(const int32_t* ranks, int64_t count, int64_t limit, char* scratch,
                   int32_t* out) {
  const int64_t selected = count < limit ? count : limit;
  if (selected > 0) {
    Candidates candidates = candidates_in(scratch, count);
    gather(ranks, count, selected, candidates);
    thin_out(selected, candidates);
    write_sorted(candidates, selected, out);
  }
  for (int64_t i = selected; i < limit; ++i) out[i] = -1;
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL
