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
inline constexpr int kTileOfRows = kTileVectors > 2 ? 6 : 4;
inline constexpr int kTileOfWeights = kTileVectors > 2 ? 4 : 2;

// fp32 numbers, or others that are widened when they are loaded.
template <class Element>
struct Widened {
  using Packed = float;
  static constexpr int64_t kStep = kLanes;
  template <class Stored>
  static inline F32 load_step(const Stored* p) {
    return load(p);
  }
  static inline F32 accumulate(F32 sum, F32 a, F32 b) { return multiply_add(a, b, sum); }
};

#if defined(CUSTOM_PYPTO_CPU_BF16_DOT) && defined(__AVX512F__)
struct Pairs {
  using Packed = Bf16;
  static constexpr int64_t kStep = 2 * kLanes;
  static inline Bf16Pairs load_step(const Bf16* p) {
    return load_pairs(reinterpret_cast<const char*>(p));
  }
  static inline F32 accumulate(F32 sum, Bf16Pairs a, Bf16Pairs b) {
    return dot_accumulate(sum, a, b);
  }
};
template <class Element>
struct DotOperands : Widened<Element> {};
template <>
struct DotOperands<Bf16> : Pairs {};
#else
template <class Element>
struct DotOperands : Widened<Element> {};
#endif

template <class Element>
class Product {
  using Operands = DotOperands<Element>;
  using Packed = typename Operands::Packed;

  // Vectors of a row that are multiplied before the next row: those of a tile's weights stay in the
  // L1 cache meanwhile.
  static constexpr int64_t kBlock = 32 * Operands::kStep;

 public:
  // Rows are packed, an odd number of cache lines apart: at distances of a power of two they would
  // share a few sets of the cache.
  static int64_t scratch_bytes(int64_t depth, int64_t count) {
    return (count * stride(depth) + kTileOfWeights * stride(kBlock)) * size(sizeof(Packed)) +
           count * kTileOfWeights * size(sizeof(F32));
  }

  static void run(const ProductTask& task) {
    Product product(task);
    const auto* rows = static_cast<const Element*>(task.rows);
    product.pack(rows, task.count, task.depth, product.stride_, product.rows_);
    int64_t column = task.first;
    for (; column + kTileOfWeights <= task.last; column += kTileOfWeights) {
      product.multiply<kTileOfWeights>(column);
    }
    for (; column < task.last; ++column) product.multiply<1>(column);
  }

 private:
  explicit Product(const ProductTask& task)
      : task_(task),
        stride_(stride(task.depth)),
        rows_(reinterpret_cast<Packed*>(task.scratch)),
        weights_(rows_ + task.count * stride_),
        sums_(reinterpret_cast<float*>(weights_ + kTileOfWeights * stride(kBlock))) {}

  static constexpr int64_t size(size_t bytes) { return static_cast<int64_t>(bytes); }
  static constexpr int64_t stride(int64_t depth) {
    constexpr int64_t kLine = 64 / size(sizeof(Packed));
    return ((depth + kLine - 1) / kLine | 1) * kLine;
  }

  // `count` rows of `depth` numbers.
  void pack(const Element* from, int64_t count, int64_t depth, int64_t to_stride,
            Packed* to) const {
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (sizeof(Packed) == sizeof(Element)) {
        __builtin_memcpy(to + i * to_stride, from + i * task_.depth,
                         static_cast<size_t>(depth) * sizeof(Packed));
      } else {
        widen(from + i * task_.depth, 1, depth, to + i * to_stride);
      }
    }
  }

  // The columns [column, column + kWeights). Several tiles of rows share packed weights.
  template <int kWeights>
  void multiply(int64_t column) {
    const auto* weights = static_cast<const Element*>(task_.weight) + column * task_.depth;
    if (task_.count <= kTileOfRows) {
      multiply_rest<kTileOfRows, kWeights>(0, 0, task_.depth, weights, task_.depth);
    } else {
      for (int64_t k = 0; k < task_.depth; k += kBlock) {
        const int64_t depth = task_.depth - k < kBlock ? task_.depth - k : kBlock;
        pack(weights + k, kWeights, depth, stride(kBlock), weights_);
        int64_t row = 0;
        for (; row + kTileOfRows <= task_.count; row += kTileOfRows) {
          multiply_tile<kTileOfRows, kWeights>(row, k, depth, weights_, stride(kBlock));
        }
        multiply_rest<kTileOfRows - 1, kWeights>(row, k, depth, weights_, stride(kBlock));
      }
    }
    for (int64_t i = 0; i < task_.count * kWeights; ++i) {
      task_.out[i / kWeights * task_.out_stride + column + i % kWeights] =
          reduce_add(load(sums_ + i * kLanes));
    }
  }

  // The rows from `row` on, of which there are at most kRows.
  template <int kRows, int kWeights, class Stored>
  void multiply_rest(int64_t row, int64_t first, int64_t depth, const Stored* weights,
                     int64_t stride) {
    if constexpr (kRows > 0) {
      if (task_.count - row == kRows) {
        return multiply_tile<kRows, kWeights>(row, first, depth, weights, stride);
      }
      multiply_rest<kRows - 1, kWeights>(row, first, depth, weights, stride);
    }
  }

  // Adds `depth` numbers from `first` on to the sums of a tile. `weights` begin at `first`.
  template <int kRows, int kWeights, class Stored>
  void multiply_tile(int64_t row, int64_t first, int64_t depth, const Stored* weights,
                     int64_t stride) {
    const Packed* const rows = rows_ + row * stride_ + first;
    float* const at = sums_ + row * kWeights * kLanes;
    F32 sums[kRows][kWeights];
    unroll<kRows * kWeights>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      sums[i / kWeights][i % kWeights] = first == 0 ? zero() : load(at + i * kLanes);
    });
    int64_t k = 0;
    for (; k + Operands::kStep <= depth; k += Operands::kStep) {
      add_step(sums, rows + k, stride_, weights + k, stride);
      if constexpr (kRows == 1) {  // weights are read once: prefetch the same step of the next ones
        unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
          __builtin_prefetch(weights + (kWeights + w) * stride + k);
        });
      }
    }
    if (k < depth) {  // zeros behind the last numbers
      Packed last_rows[kRows * Operands::kStep] = {};
      Stored last_weights[kWeights * Operands::kStep] = {};
      const auto rest = static_cast<size_t>(depth - k);
      for (int i = 0; i < kRows; ++i) {
        __builtin_memcpy(last_rows + i * Operands::kStep, rows + i * stride_ + k,
                         rest * sizeof(Packed));
      }
      for (int i = 0; i < kWeights; ++i) {
        __builtin_memcpy(last_weights + i * Operands::kStep, weights + i * stride + k,
                         rest * sizeof(Stored));
      }
      add_step(sums, last_rows, Operands::kStep, last_weights, Operands::kStep);
    }
    unroll<kRows * kWeights>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
      store(at + i * kLanes, sums[i / kWeights][i % kWeights]);
    });
  }

  template <int kRows, int kWeights, class Stored>
  static inline __attribute__((always_inline)) void add_step(F32 (&sums)[kRows][kWeights],
                                                             const Packed* a, int64_t a_stride,
                                                             const Stored* b, int64_t b_stride) {
    decltype(Operands::load_step(b)) weights[kWeights];
    unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
      weights[w] = Operands::load_step(b + w * b_stride);
    });
    unroll<kRows>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
      const auto of_row = Operands::load_step(a + r * a_stride);
      unroll<kWeights>([&](int w) CUSTOM_PYPTO_INLINE_LAMBDA {
        sums[r][w] = Operands::accumulate(sums[r][w], of_row, weights[w]);
      });
    });
  }

  const ProductTask& task_;
  int64_t stride_;
  Packed* rows_;
  Packed* weights_;
  float* sums_;
};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
