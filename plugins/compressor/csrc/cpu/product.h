// Products of rows and weights whose contiguous dimension is the one that is summed, as linear
// layers have them: a dot product for each pair of a row and a weight's row.
//
// A sum has the same bits whatever rows and weights share its tile: it is the sum over the lanes of
// one vector, which is accumulated from the first number to the last.
#pragma once

#include <custom_pypto_blocks/cpu/unroll.h>
#include <custom_pypto_blocks/cpu/widen.h>

#include "compressor_kernels.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_compressor::ProductTask;

// Sums of a tile: with a vector of each weight and one of a row they fill the registers.
inline constexpr int kTileOfRows = kTileVectors > 2 ? 6 : 3;
inline constexpr int kTileOfWeights = 4;
// Weights that are packed together: several tiles of them read a tile of rows from the L1 cache.
inline constexpr int kGroup = 2 * kTileOfWeights;
// Numbers of a row that are multiplied before the next row: a group of weights and a tile of rows
// stay in the L1 cache meanwhile.
inline constexpr int64_t kBlock = 32 * kLanes;

// sums[r][w] += the dot product of `depth` numbers; the first ones set it. `Stored` is fp32, or
// widened when it is loaded. Prefetches as many numbers of `next`.
template <int kRows, int kWeights, class Stored, class Element>
void multiply_tile(const float* rows, int64_t row_stride, const Stored* weights, int64_t stride,
                   int64_t depth, const Element* next, bool is_first, float* to) {
  F32 sums[kRows][kWeights];
  const auto each = [&](const auto& f) CUSTOM_PYPTO_INLINE_LAMBDA {
    unroll<kRows * kWeights>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      f(sums[i / kWeights][i % kWeights], to + (i / kWeights * kGroup + i % kWeights) * kLanes);
    });
  };
  const auto add = [&](const float* a, int64_t a_stride, const Stored* b, int64_t b_stride)
                       CUSTOM_PYPTO_INLINE_LAMBDA {
                         F32 of_weight[kWeights];
                         unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
                           of_weight[w] = load(b + w * b_stride);
                         });
                         unroll<kRows>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
                           const F32 of_row = load(a + r * a_stride);
                           unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
                             sums[r][w] = multiply_add(of_row, of_weight[w], sums[r][w]);
                           });
                         });
                       };
  each([&](F32& sum, const float* from)
           CUSTOM_PYPTO_INLINE_LAMBDA { sum = is_first ? zero() : load(from); });
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    add(rows + k, row_stride, weights + k, stride);
    __builtin_prefetch(next + k, 0, 2);
    if constexpr (kRows == 1) {  // weights are read once: prefetch the same step of the next ones
      unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
        __builtin_prefetch(weights + (kWeights + w) * stride + k);
      });
    }
  }
  if (k < depth) {  // zeros behind the last numbers
    float last_rows[kRows * kLanes] = {};
    Stored last_weights[kWeights * kLanes] = {};
    const auto rest = static_cast<size_t>(depth - k);
    for (int i = 0; i < kRows; ++i) {
      __builtin_memcpy(last_rows + i * kLanes, rows + i * row_stride + k, rest * sizeof(float));
    }
    for (int i = 0; i < kWeights; ++i) {
      __builtin_memcpy(last_weights + i * kLanes, weights + i * stride + k, rest * sizeof(Stored));
    }
    add(last_rows, kLanes, last_weights, kLanes);
  }
  each([](const F32& sum, float* at) CUSTOM_PYPTO_INLINE_LAMBDA { store(at, sum); });
}

template <class Element>
class Product {
 public:
  static int64_t scratch_bytes(int64_t depth, int64_t count) {
    return (count * (stride_of(depth) + kGroup * kLanes) + kGroup * stride_of(kBlock)) *
           static_cast<int64_t>(sizeof(float));
  }

  static void run(const ProductTask& task) {
    const Product product(task);
    const auto* rows = static_cast<const Element*>(task.rows);
    for (int64_t i = 0; i < task.count; ++i) {
      widen(rows + i * task.depth, 1, task.depth, product.rows_ + i * product.stride_);
    }
    for (int64_t column = task.first; column < task.last; column += kGroup) {
      product.multiply(column, task.last - column < kGroup ? task.last - column : kGroup);
    }
  }

 private:
  explicit Product(const ProductTask& task)
      : task_(task),
        stride_(stride_of(task.depth)),
        sums_(reinterpret_cast<float*>(task.scratch)),
        weights_(sums_ + task.count * kGroup * kLanes),
        rows_(weights_ + kGroup * stride_of(kBlock)) {}

  // Rows are an odd number of cache lines apart: at distances of a power of two they would share a
  // few sets of the cache.
  static constexpr int64_t stride_of(int64_t depth) { return ((depth + 15) / 16 | 1) * 16; }

  // `count` columns of the result.
  void multiply(int64_t column, int64_t count) const {
    const int64_t depth = task_.depth;
    const auto* weights = static_cast<const Element*>(task_.weight) + column * depth;
    if (task_.count <= kTileOfRows) {
      multiply_columns<kTileOfRows>(0, 0, depth, weights, depth, weights + kGroup * depth, count);
    } else {
      for (int64_t k = 0; k < depth; k += kBlock) {
        const int64_t numbers = depth - k < kBlock ? depth - k : kBlock;
        for (int64_t w = 0; w < count; ++w) {
          widen(weights + w * depth + k, 1, numbers, weights_ + w * stride_of(kBlock));
        }
        for (int64_t row = 0; row < task_.count; row += kTileOfRows) {
          // Each tile prefetches one weight's numbers that are packed next.
          const int64_t weight =
              row / kTileOfRows % kGroup + (k + numbers < depth ? 0 : kGroup - 1);
          const Element* next = weights + weight * depth + k + numbers;
          multiply_columns<kTileOfRows>(row, k, numbers, weights_, stride_of(kBlock), next, count);
        }
      }
    }
    for (int64_t i = 0; i < task_.count; ++i) {
      for (int64_t w = 0; w < count; ++w) {
        task_.out[i * task_.out_stride + column + w] =
            reduce_add(load(sums_ + (i * kGroup + w) * kLanes));
      }
    }
  }

  // kRows rows from `row` on, or fewer if there are not as many.
  template <int kRows, class Stored>
  void multiply_columns(int64_t row, int64_t first, int64_t depth, const Stored* weights,
                        int64_t stride, const Element* next, int64_t count) const {
    if constexpr (kRows > 0) {
      if (task_.count - row < kRows) {
        return multiply_columns<kRows - 1>(row, first, depth, weights, stride, next, count);
      }
      const float* const rows = rows_ + row * stride_ + first;
      float* const sums = sums_ + row * kGroup * kLanes;
      int64_t w = 0;
      for (; w + kTileOfWeights <= count; w += kTileOfWeights) {
        multiply_tile<kRows, kTileOfWeights>(rows, stride_, weights + w * stride, stride, depth,
                                             next, first == 0, sums + w * kLanes);
      }
      for (; w < count; ++w) {
        multiply_tile<kRows, 1>(rows, stride_, weights + w * stride, stride, depth, next,
                                first == 0, sums + w * kLanes);
      }
    }
  }

  const ProductTask& task_;
  int64_t stride_;
  float* sums_;
  float* weights_;
  float* rows_;
};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
