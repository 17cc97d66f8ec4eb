// A sorting network for integers: its compare-exchange steps do not depend on the data, so there is
// no branch to mispredict, and every step runs on all lanes at once.
//
// Element i of the result is in lane i / rows of vector i % rows: each lane is a column. Columns
// are sorted first, then merged in pairs until one is left.
#pragma once

#include "integer_vectors.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// Vectors sorted in registers.
inline constexpr int64_t kGroup = 8;
// Fewest integers that the network sorts.
inline constexpr int64_t kSmallestNetwork = kGroup * kLanes;

inline void compare_exchange(Integers& a, Integers& b) {
  const Integers low = lower(a, b);
  b = higher(a, b);
  a = low;
}

// Sorts columns that are bitonic (ascend, then descend, or the reverse).
inline void merge_group(Integers (&x)[kGroup]) {
#pragma GCC unroll 8
  for (int64_t step = kGroup / 2; step > 0; step /= 2) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < kGroup; ++i) {
      if ((i & step) == 0) compare_exchange(x[i], x[i + step]);
    }
  }
}

// Sorts columns of any order.
inline void sort_group(Integers (&x)[kGroup]) {
  static_assert(kGroup == 8);
  constexpr int kPairs[19][2] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6},
                                 {3, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {2, 4}, {3, 5},
                                 {1, 4}, {3, 6}, {1, 2}, {3, 4}, {5, 6}};
#pragma GCC unroll 19
  for (int i = 0; i < 19; ++i) compare_exchange(x[kPairs[i][0]], x[kPairs[i][1]]);
}

template <class Order>
inline void order_groups(Integers* rows, int64_t count, const Order& order) {
  for (int64_t first = 0; first < count; first += kGroup) {
    Integers x[kGroup];
#pragma GCC unroll 8
    for (int64_t i = 0; i < kGroup; ++i) x[i] = rows[first + i];
    order(x);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kGroup; ++i) rows[first + i] = x[i];
  }
}

// Sorts each `size` rows of a column, which are bitonic.
inline void merge_rows(Integers* rows, int64_t count, int64_t size) {
  int64_t step = size / 2;
  for (; step >= 2 * kGroup; step /= 4) {
    const int64_t half = step / 2;
    for (int64_t first = 0; first < count; first += 2 * step) {
      for (Integers *x = rows + first, *end = x + half; x < end; ++x) {
        Integers a = x[0], b = x[half], c = x[step], d = x[step + half];
        compare_exchange(a, c);
        compare_exchange(b, d);
        compare_exchange(a, b);
        compare_exchange(c, d);
        x[0] = a, x[half] = b, x[step] = c, x[step + half] = d;
      }
    }
  }
  if (step == kGroup) {
    for (int64_t first = 0; first < count; first += 2 * kGroup) {
      for (int64_t i = first; i < first + kGroup; ++i) compare_exchange(rows[i], rows[i + kGroup]);
    }
  }
  order_groups(rows, count, [](Integers(&x)[kGroup]) { merge_group(x); });
}

inline void sort_columns(Integers* rows, int64_t count) {
  order_groups(rows, count, [](Integers(&x)[kGroup]) { sort_group(x); });
  for (int64_t size = 2 * kGroup; size <= count; size *= 2) {
    for (int64_t first = 0; first < count; first += size) {
      Integers* low = rows + first;
      for (Integers* high = low + size - 1; low < high; ++low, --high)
        compare_exchange(*low, *high);
    }
    merge_rows(rows, count, size / 2);
  }
}

// Compare-exchange steps between lanes at distance kStep, kStep / 2, .. 1.
template <int kStep>
inline Integers exchange_lanes(Integers x) {
  if constexpr (kStep == 0) {
    return x;
  } else {
    const Integers other = flip_lanes<kStep>(x, AllLanes());
    return exchange_lanes<kStep / 2>(
        pick_lanes<kStep>(lower(x, other), higher(x, other), AllLanes()));
  }
}

// Merges pairs of sorted columns of kWidth / 2 lanes.
template <int kWidth>
inline void merge_columns(Integers* rows, int64_t count) {
  constexpr int kHalf = kWidth / 2;
  for (Integers *top = rows, *bottom = rows + count - 1; top < bottom; ++top, --bottom) {
    const Integers a = *top;
    const Integers b = flip_lanes<kWidth - 1>(*bottom, AllLanes());
    const Integers low = lower(a, b);
    const Integers high = higher(a, b);
    *top = exchange_lanes<kHalf / 2>(pick_lanes<kHalf>(low, high, AllLanes()));
    *bottom = exchange_lanes<kHalf / 2>(
        flip_lanes<kWidth - 1>(pick_lanes<kHalf>(high, low, AllLanes()), AllLanes()));
  }
  merge_rows(rows, count, count);
  if constexpr (kWidth < kLanes) merge_columns<kWidth * 2>(rows, count);
}

// The size of the network for `count` integers, a power of two.
inline int64_t network_size(int64_t count) {
  int64_t size = kSmallestNetwork;
  while (size < count) size *= 2;
  return size;
}

// Sorts `size` integers (a network_size, aligned to a vector) in ascending order: element i of the
// result is integers[network_index(i, size)].
inline void sort_network(int32_t* integers, int64_t size) {
  Integers* rows = reinterpret_cast<Integers*>(integers);
  sort_columns(rows, size / kLanes);
  merge_columns<2>(rows, size / kLanes);
}

inline int64_t network_index(int64_t place, int64_t size) {
  const int64_t rows = size / kLanes;  // a power of two: divisions would be slow
  return (place & (rows - 1)) * kLanes + (place >> __builtin_ctzll(static_cast<uint64_t>(rows)));
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
