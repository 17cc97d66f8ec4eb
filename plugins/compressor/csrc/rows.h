// The steps of the op on a CPU: products of the new tokens, and compressed rows.
#pragma once

#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto_blocks/element.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "batch.h"
#include "cpu/compressor_kernels.h"

namespace custom_pypto_compressor {

// Numbers that are worth another thread.
constexpr int64_t kUnitNumbers = 1 << 15;

// kv and scores of the used tokens, [tokens, width] each, fp32. Scores have ape added. A token's
// numbers depend on nothing but the token: not on the other tokens, nor on their number.
struct Products {
  Tensor kv;
  Tensor scores;
};
Products project_tokens(const Tensor& x, const Tensor& wkv, const Tensor& wgate, const Tensor& ape,
                        const Batch& batch, const Sizes& sizes);

// The rows of the used tokens, [.., H], contiguous.
Tensor used_rows(const Tensor& x, const Batch& batch);

// kv and scores of one token, [width] each.
struct Token {
  const float* kv;
  const float* scores;
};

// Where the rows go. The three are contiguous: [rows, D], [rows, tokens, D], [rows, tokens, D].
struct RowOutputs {
  Tensor rows;
  float* weights = nullptr;  // or null
  float* kv = nullptr;       // or null
};

// Fills `out`: each row that no window has, and each token before position 0, with zeros.
// token(sequence, position) gives the tokens that a row covers.
template <class TokenAt>
void compress_windows(const Batch& batch, const Sizes& sizes, const TokenAt& token,
                      const RowOutputs& out) {
  const auto windows = static_cast<int64_t>(batch.windows().size());
  const int64_t channels = sizes.channels;
  const int64_t covered = sizes.tokens() * channels;
  const int64_t bytes = static_cast<int64_t>(out.rows.element_size());
  auto* rows = static_cast<char*>(out.rows.mutable_data_ptr());
  std::memset(rows, 0, static_cast<std::size_t>(out.rows.numel() * bytes));
  const auto clear = [&](float* numbers) {
    if (numbers == nullptr || channels == 0) return;
    std::fill_n(numbers, out.rows.numel() / channels * covered, 0.0f);
  };
  clear(out.weights);
  clear(out.kv);
  const auto element = static_cast<int>(custom_pypto::element_of(out.rows.scalar_type()));
  const auto compress = kernels().compress[element];
  const int64_t grain = std::max<int64_t>(1, kUnitNumbers / std::max<int64_t>(1, covered));
  custom_pypto::parallel_for(0, windows, grain, [&](int64_t begin, int64_t end) {
    std::vector<const float*> kv(static_cast<std::size_t>(sizes.tokens()));
    std::vector<const float*> scores(kv.size());
    for (int64_t i = begin; i < end; ++i) {
      const Window& window = batch.windows()[static_cast<std::size_t>(i)];
      // The window before the first one has no tokens.
      const int64_t parts = window.number == 0 ? 1 : sizes.parts;
      int64_t count = 0;
      for (int64_t part = sizes.parts - parts; part < sizes.parts; ++part) {
        const int64_t first = (window.number + part - sizes.parts + 1) * sizes.ratio;
        for (int64_t position = first; position < first + sizes.ratio; ++position, ++count) {
          const Token each = token(window.sequence, position);
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
