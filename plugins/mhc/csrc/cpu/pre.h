// npu_mhc_pre: the products with phi, and what each token makes of them.
#pragma once

#include "mhc_kernels.h"
#include "wide.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_mhc::kMixDepth;
using custom_pypto_mhc::kMixTokens;
using custom_pypto_mhc::PreCall;
using custom_pypto_mhc::Range;

inline void round_to_hf32(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = float_bits(from[i]);
    const bool is_finite = (bits & 0x7f800000u) != 0x7f800000u;
    to[i] = float_from_bits(is_finite ? (bits + 0x1000u) & ~0x1fffu : bits);
  }
}

// Sums of a tile must fit the registers, with a vector of each row and of a token.
inline constexpr int kTokensOfTile = 4;
template <class Number>
inline constexpr int kRowsOfTile = Wide<Number>::kWidth >= 16 ? 6 : 3;

// h_mix[t][r] += x[t] . phi[r] over `depth` columns. Rows of x are kMixDepth apart and filled up
// with zeros. The additions of a sum are in the same order in a tile of any size.
template <class Number, int kTokens, int kRows>
void multiply_tile(const Number* x, int64_t tokens, const Number* phi, int64_t phi_stride,
                   int64_t rows, int64_t depth, Number* h_mix, int64_t h_mix_stride) {
  if constexpr (kTokens > 1) {
    if (tokens < kTokens) {
      return multiply_tile<Number, kTokens - 1, kRows>(x, tokens, phi, phi_stride, rows, depth,
                                                       h_mix, h_mix_stride);
    }
  }
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return multiply_tile<Number, kTokens, kRows - 1>(x, tokens, phi, phi_stride, rows, depth,
                                                       h_mix, h_mix_stride);
    }
  }
  using Vector = VectorOf<Number>;
  Vector sums[kRows][kTokensOfTile];
  unroll<kRows * kTokensOfTile>([&](int i) CUSTOM_PYPTO_INLINE_LAMBDA {
    sums[i / kTokensOfTile][i % kTokensOfTile] = Vector{};
  });
  for_vectors<Number>(depth, [&](int64_t k, auto how) CUSTOM_PYPTO_INLINE_LAMBDA {
    Vector of_phi[kRows];
    unroll<kRows>(
        [&](int r) CUSTOM_PYPTO_INLINE_LAMBDA { of_phi[r] = get(phi + r * phi_stride + k, how); });
    unroll<kTokens>([&](int t) CUSTOM_PYPTO_INLINE_LAMBDA {
      const Vector of_x = load(x + t * kMixDepth + k);
      unroll<kRows>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
        sums[r][t] = multiply_add(of_phi[r], of_x, sums[r][t]);
      });
    });
  });
  unroll<kRows>([&](int r) CUSTOM_PYPTO_INLINE_LAMBDA {
    Number totals[kTokensOfTile];
    reduce_add4(sums[r][0], sums[r][1], sums[r][2], sums[r][3], totals);
    for (int t = 0; t < kTokens; ++t) h_mix[t * h_mix_stride + r] += totals[t];
  });
}

template <class Element>
void mix(const PreCall& call, Range tokens, Range of_phi, void* scratch) {
  using Number = NumberOf<Element>;
  using Vector = VectorOf<Element>;
  constexpr int kRows = kRowsOfTile<Number>;
  const int64_t depth = call.sizes.depth;
  const int64_t rows = call.sizes.rows;
  Number* const wide = at<Number>(scratch, 0);
  Number* const h_mix = at<Number>(call.h_mix, tokens.first * rows + of_phi.first);
  Number squares[kMixTokens] = {};
  for (int64_t t = 0; t < tokens.count; ++t) {
    for (int64_t r = 0; r < of_phi.count; ++r) h_mix[t * rows + r] = 0;
  }
  for (int64_t k = 0; k < depth; k += kMixDepth) {
    const int64_t count = depth - k < kMixDepth ? depth - k : kMixDepth;
    for (int64_t t = 0; t < tokens.count; ++t) {
      const Element* const x = at<Element>(call.x, (tokens.first + t) * depth + k);
      const Number* const gamma = call.gamma == nullptr ? nullptr : at<Number>(call.gamma, k);
      Number* const row = wide + t * kMixDepth;
      Vector sum{};
      for_vectors<Element>(count, [&](int64_t i, auto how) CUSTOM_PYPTO_INLINE_LAMBDA {
        const Vector of_x = get(x + i, how);
        sum = multiply_add(of_x, of_x, sum);
        store(row + i, gamma == nullptr ? of_x : multiply(of_x, get(gamma + i, how)));
      });
      squares[t] += reduce_add(sum);
      if constexpr (sizeof(Number) == sizeof(float)) {
        if (call.is_hf32) round_to_hf32(row, count, row);
      }
    }
    for (int64_t r = 0; r < of_phi.count; r += kRows) {
      for (int64_t t = 0; t < tokens.count; t += kTokensOfTile) {
        multiply_tile<Number, kTokensOfTile, kRows>(
            wide + t * kMixDepth, tokens.count - t,
            at<Number>(call.phi, (of_phi.first + r) * depth + k), depth, of_phi.count - r, count,
            h_mix + t * rows + r, rows);
      }
    }
  }
  if (of_phi.first != 0) return;
  for (int64_t t = 0; t < tokens.count; ++t) {
    const double mean = static_cast<double>(squares[t]) / static_cast<double>(depth);
    *at<Number>(call.inv_rms, tokens.first + t) =
        static_cast<Number>(1 / __builtin_sqrt(mean + call.norm_eps));
  }
}

template <class Number>
inline Number sigmoid(Number x) {
  return 1 / (1 + exponential(-x));
}

// The most streams of a token.
inline constexpr int kMostStreams = 8;

template <class Element>
void pre(const PreCall& call, Range tokens) {
  using Number = NumberOf<Element>;
  using Vector = VectorOf<Element>;
  const int64_t n = call.sizes.streams;
  const int64_t columns = call.sizes.columns;
  const int64_t rows = call.sizes.rows;
  const Number* const alpha = at<Number>(call.alpha, 0);
  const Number* const bias = at<Number>(call.bias, 0);
  for (int64_t token = tokens.first; token < tokens.first + tokens.count; ++token) {
    const Number* const h_mix = at<Number>(call.h_mix, token * rows);
    const Number inv_rms = *at<Number>(call.inv_rms, token);
    const auto linear = [&](int64_t row, int64_t kind) {
      return h_mix[row] * inv_rms * alpha[kind] + bias[row];
    };
    Number weights[kMostStreams];
    for (int64_t i = 0; i < n; ++i) {
      weights[i] = sigmoid(linear(i, 0)) + static_cast<Number>(call.hc_eps);
      *at<Number>(call.h_post, token * n + i) = 2 * sigmoid(linear(n + i, 1));
      if (call.h_pre != nullptr) *at<Number>(call.h_pre, token * n + i) = weights[i];
    }
    for (int64_t row = 2 * n; row < rows; ++row) {
      *at<Number>(call.h_res, token * n * n + row - 2 * n) = linear(row, 2);
    }
    const Element* const x = at<Element>(call.x, token * n * columns);
    Element* const h_in = at<Element>(call.h_in, token * columns);
    for_vectors<Element>(columns, [&](int64_t i, auto how) CUSTOM_PYPTO_INLINE_LAMBDA {
      Vector sum{};
      for (int64_t stream = 0; stream < n; ++stream) {
        sum = multiply_add(spread(weights[stream]), get(x + stream * columns + i, how), sum);
      }
      put(h_in + i, sum, how);
    });
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
