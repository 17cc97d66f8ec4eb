// The steps of the op on a CPU: products of the new tokens, and compressed rows.
#pragma once

#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto_blocks/element.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "batch.h"
#include "cpu/compressor_kernels.h"

namespace custom_pypto_compressor {

// Numbers that are worth another thread.
constexpr int64_t kUnitNumbers = 1 << 15;

// The rows of the used tokens, [.., H], contiguous.
Tensor used_rows(const Tensor& x, const Batch& batch);

// a [rows, depth] @ b [depth, columns] in fp64. Bits do not depend on the other rows, nor on
// threads.
Tensor multiply_fp64(const Tensor& a, const Tensor& b);

// kv and scores of the used tokens, [tokens, width] each, fp32, or fp64 if x is. Scores have ape
// added. A token's numbers depend on nothing but the token: not on the other tokens, nor on their
// number.
struct Products {
  Tensor kv;
  Tensor scores;
};
Products project_tokens(const Tensor& x, const Tensor& wkv, const Tensor& wgate, const Tensor& ape,
                        const Batch& batch, const Sizes& sizes);

// kv and scores of one token, [width] each.
template <class Real>
struct Token {
  const Real* kv;
  const Real* scores;
};

// Where the rows go: contiguous, [rows, D], [rows, tokens, D], [rows, tokens, D], full of zeros.
template <class Real>
struct RowOutputs {
  Tensor rows;
  Real* weights = nullptr;  // or null
  Real* kv = nullptr;       // or null
};

template <class Real>
using CompressKernel = void (*)(const RowTask<Real>& task);

// The kernel of a dtype of rows.
inline CompressKernel<float> compress_of(const Tensor& rows, float) {
  return kernels().compress[custom_pypto::float_index(rows.scalar_type())];
}
inline CompressKernel<double> compress_of(const Tensor&, double) {
  return [](const RowTask<double>& task) {
    for (int64_t c = 0; c < task.channels; ++c) {
      double most = -std::numeric_limits<double>::infinity();
      for (int64_t i = 0; i < task.tokens; ++i) most = std::max(most, task.scores[i][c]);
      double sum = 0;
      double mean = 0;
      for (int64_t i = 0; i < task.tokens; ++i) sum += std::exp(task.scores[i][c] - most);
      for (int64_t i = 0; i < task.tokens; ++i) {
        const double weight = std::exp(task.scores[i][c] - most) / sum;
        mean += weight * task.kv[i][c];
        task.weights[i * task.channels + c] = weight;
      }
      static_cast<double*>(task.out)[c] = mean;
    }
  };
}

// token(sequence, position) gives the tokens that a row covers.
template <class Real, class TokenAt>
void compress_windows(const Batch& batch, const Sizes& sizes, const TokenAt& token,
                      const RowOutputs<Real>& out) {
  const int64_t channels = sizes.channels;
  const int64_t covered = sizes.tokens() * channels;
  const int64_t bytes = static_cast<int64_t>(out.rows.element_size());
  auto* rows = static_cast<char*>(out.rows.mutable_data_ptr());
  const auto compress = compress_of(out.rows, Real{});
  const int64_t grain = std::max<int64_t>(1, kUnitNumbers / covered);
  const auto windows = static_cast<int64_t>(batch.windows.size());
  custom_pypto::parallel_for(0, windows, grain, [&](int64_t begin, int64_t end) {
    std::vector<const Real*> kv(static_cast<std::size_t>(sizes.tokens()));
    std::vector<const Real*> scores(kv.size());
    for (int64_t i = begin; i < end; ++i) {
      const Window& window = batch.windows[static_cast<std::size_t>(i)];
      // The window before the first one has no tokens.
      const int64_t first_part = window.number == 0 ? sizes.parts - 1 : 0;
      int64_t count = 0;
      for (int64_t part = first_part; part < sizes.parts; ++part) {
        const int64_t first = (window.number + part - sizes.parts + 1) * sizes.ratio;
        for (int64_t position = first; position < first + sizes.ratio; ++position, ++count) {
          const Token<Real> each = token(window.sequence, position);
          kv[static_cast<std::size_t>(count)] = each.kv + part * channels;
          scores[static_cast<std::size_t>(count)] = each.scores + part * channels;
        }
      }
      const int64_t at = window.row * covered + (sizes.tokens() - count) * channels;
      compress({kv.data(), scores.data(), count, channels, rows + window.row * channels * bytes,
                out.weights == nullptr ? nullptr : out.weights + at});
      for (int64_t k = 0; out.kv != nullptr && k < count; ++k) {
        std::copy_n(kv[static_cast<std::size_t>(k)], channels, out.kv + at + k * channels);
      }
    }
  });
}

}  // namespace custom_pypto_compressor
