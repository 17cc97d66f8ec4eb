// The form for training computes as npu_compressor does, or in fp64. The gradient computes in fp32,
// or in fp64.
#include "train.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/projection.h>

#include <cmath>
#include <limits>

#include "rows.h"

namespace custom_pypto_compressor {
namespace {

using namespace custom_pypto;
using Train = ops::npu_compressor_train;
using Backward = ops::npu_compressor_backward;

template <class Real>
using Numbers = std::vector<Real>;

// out [rows, columns] = a [rows, depth] @ b [depth, columns].
void multiply(const float* a, const float* b, int64_t rows, int64_t depth, int64_t columns,
              float* out) {
  project(kernels().matmul, {a, rows, depth}, weight_of_matrix(b, depth, columns),
          {out, rows, columns});
}
void multiply(const double* a, const double* b, int64_t rows, int64_t depth, int64_t columns,
              double* out) {
  parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    std::fill(out + begin * columns, out + end * columns, 0.0);
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t j = 0; j < columns; ++j) {
          out[i * columns + j] += a[i * depth + k] * b[k * columns + j];
        }
      }
    }
  });
}

// [columns, rows] of a matrix [rows, columns].
template <class Real>
Numbers<Real> transposed(const Real* matrix, int64_t rows, int64_t columns) {
  Numbers<Real> out(static_cast<std::size_t>(rows * columns));
  parallel_for(0, columns, std::max<int64_t>(1, kUnitNumbers / std::max<int64_t>(1, rows)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = 0; i < rows; ++i) {
                   for (int64_t j = begin; j < end; ++j) {
                     out[static_cast<std::size_t>(j * rows + i)] = matrix[i * columns + j];
                   }
                 }
               });
  return out;
}

// The numbers of a tensor with contiguous memory, as fp32 or fp64.
template <class Real>
Numbers<Real> numbers_of(const Tensor& tensor) {
  const Tensor source = to_contiguous(tensor);
  Numbers<Real> out(static_cast<std::size_t>(source.numel()));
  if constexpr (std::is_same_v<Real, double>) {
    std::copy_n(source.const_data_ptr<double>(), out.size(), out.data());
  } else {
    const auto element = static_cast<int>(element_of(source.scalar_type()));
    kernels().widen[element](source.const_data_ptr(), source.numel(), out.data());
  }
  return out;
}

template <class Real>
void write(const Real* numbers, const Tensor& out) {
  if constexpr (std::is_same_v<Real, double>) {
    std::copy_n(numbers, out.numel(), out.mutable_data_ptr<double>());
  } else {
    const auto element = static_cast<int>(element_of(out.scalar_type()));
    kernels().narrow[element](numbers, out.numel(), out.mutable_data_ptr());
  }
}

// The row of the outputs, and the token of its row, for the token at a position that is in part
// `part` of the row. No row: the window is open, or was closed before.
struct Place {
  int64_t row;
  int64_t token;
};

// Calls f(sequence, i, part, place) for each used token, i of its sequence, and each part of the
// rows, with the place of its kv and score in the outputs, if it has one.
template <class F>
void for_each_token(const Batch& batch, const Sizes& sizes, const F& f) {
  std::vector<std::size_t> first_windows(batch.sequences().size() + 1, batch.windows().size());
  for (std::size_t w = batch.windows().size(); w-- > 0;) {
    first_windows[static_cast<std::size_t>(batch.windows()[w].sequence)] = w;
  }
  for (std::size_t b = 0; b < batch.sequences().size(); ++b) {
    const Sequence& sequence = batch.sequences()[b];
    const int64_t first = sequence.start / sizes.ratio;
    const int64_t last = (sequence.start + sequence.count) / sizes.ratio;
    for (int64_t i = 0; i < sequence.count; ++i) {
      const int64_t position = sequence.start + i;
      for (int64_t part = 0; part < sizes.parts; ++part) {
        const int64_t window = position / sizes.ratio + sizes.parts - 1 - part;
        if (window < first || window >= last) continue;
        const Window& row =
            batch.windows()[first_windows[b] + static_cast<std::size_t>(window - first)];
        f(sequence, i, part, Place{row.row, part * sizes.ratio + position % sizes.ratio});
      }
    }
  }
}

// In fp64: each row of the tokens that `for_each_token` gives it.
void train_fp64(const Train::Arguments& a, const Batch& batch, const Sizes& sizes,
                const Train::Outputs& out) {
  const int64_t width = sizes.width();
  const int64_t hidden = a.wkv.size(1);
  const Numbers<double> x = numbers_of<double>(used_rows(a.x, batch));
  const Numbers<double> ape = numbers_of<double>(a.ape);
  const auto project_fp64 = [&](const Tensor& weight) {
    Numbers<double> products(static_cast<std::size_t>(batch.tokens() * width));
    const Numbers<double> rows = numbers_of<double>(weight);
    multiply(x.data(), transposed(rows.data(), width, hidden).data(), batch.tokens(), hidden, width,
             products.data());
    return products;
  };
  const Numbers<double> new_kv = project_fp64(a.wkv);
  const Numbers<double> new_scores = project_fp64(a.wgate);
  auto* const rows = out.cmp_kv.mutable_data_ptr<double>();
  auto* const weights = out.softmax_score.mutable_data_ptr<double>();
  auto* const kv = out.kv.mutable_data_ptr<double>();
  std::fill_n(rows, out.cmp_kv.numel(), 0.0);
  std::fill_n(kv, out.kv.numel(), 0.0);
  std::fill_n(weights, out.kv.numel(), -std::numeric_limits<double>::infinity());
  const int64_t channels = sizes.channels;
  for_each_token(batch, sizes, [&](const Sequence& sequence, int64_t i, int64_t part, Place place) {
    const int64_t from = (sequence.place + i) * width + part * channels;
    const int64_t bias = (sequence.start + i) % sizes.ratio * width + part * channels;
    const int64_t to = (place.row * sizes.tokens() + place.token) * channels;
    for (int64_t c = 0; c < channels; ++c) {
      kv[to + c] = new_kv[static_cast<std::size_t>(from + c)];
      weights[to + c] =
          new_scores[static_cast<std::size_t>(from + c)] + ape[static_cast<std::size_t>(bias + c)];
    }
  });
  const int64_t covered = sizes.tokens() * channels;
  for (int64_t row = 0; row < out.cmp_kv.numel() / channels; ++row) {
    for (int64_t c = 0; c < channels; ++c) {
      double* const of_channel = weights + row * covered + c;
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t k = 0; k < covered; k += channels) largest = std::max(largest, of_channel[k]);
      double sum = 0;
      for (int64_t k = 0; k < covered; k += channels) {
        of_channel[k] = std::isinf(largest) ? 0 : std::exp(of_channel[k] - largest);
        sum += of_channel[k];
      }
      for (int64_t k = 0; k < covered; k += channels) {
        if (sum != 0) of_channel[k] /= sum;
        rows[row * channels + c] += of_channel[k] * kv[row * covered + k + c];
      }
    }
  }
}

template <class Real>
void backward_of(const Backward::Arguments& a, const Batch& batch, const Sizes& sizes,
                 const Backward::Outputs& out) {
  const int64_t width = sizes.width();
  const int64_t channels = sizes.channels;
  const int64_t covered = sizes.tokens() * channels;
  const int64_t hidden = a.wkv.size(1);
  const int64_t tokens = batch.tokens();
  const Numbers<Real> d_rows = numbers_of<Real>(a.d_cmp_kv);
  const Numbers<Real> weights = numbers_of<Real>(a.softmax_score);
  const Numbers<Real> kv = numbers_of<Real>(a.kv);

  // For each row and channel, the sum over its tokens of weight times gradient of the weight.
  Numbers<Real> sums(d_rows.size());
  for (const Window& window : batch.windows()) {
    const auto to = static_cast<std::size_t>(window.row * channels);
    auto from = static_cast<std::size_t>(window.row * covered);
    for (int64_t k = 0; k < sizes.tokens(); ++k) {
      for (int64_t c = 0; c < channels; ++c, ++from) {
        const std::size_t at = to + static_cast<std::size_t>(c);
        sums[at] += weights[from] * d_rows[at] * kv[from];
      }
    }
  }

  // The gradients of each token's kv and score, side by side: [tokens, 2 * width].
  Numbers<Real> d_products(static_cast<std::size_t>(tokens * 2 * width));
  Numbers<Real> d_ape(static_cast<std::size_t>(sizes.ratio * width));
  for_each_token(batch, sizes, [&](const Sequence& sequence, int64_t i, int64_t part, Place place) {
    Real* const d_kv = d_products.data() + (sequence.place + i) * 2 * width + part * channels;
    Real* const d_bias =
        d_ape.data() + (sequence.start + i) % sizes.ratio * width + part * channels;
    auto from = static_cast<std::size_t>(place.row * covered + place.token * channels);
    auto row = static_cast<std::size_t>(place.row * channels);
    for (int64_t c = 0; c < channels; ++c, ++from, ++row) {
      d_kv[c] = weights[from] * d_rows[row];
      d_kv[width + c] = weights[from] * (d_rows[row] * kv[from] - sums[row]);
      d_bias[c] += d_kv[width + c];
    }
  });
  write(d_ape.data(), out.d_ape);

  Numbers<Real> both = numbers_of<Real>(a.wkv);
  const Numbers<Real> gate = numbers_of<Real>(a.wgate);
  both.insert(both.end(), gate.begin(), gate.end());
  Numbers<Real> d_used(static_cast<std::size_t>(tokens * hidden));
  multiply(d_products.data(), both.data(), tokens, 2 * width, hidden, d_used.data());
  Numbers<Real> d_x(static_cast<std::size_t>(a.x.numel()));
  for (const Sequence& sequence : batch.sequences()) {
    std::copy_n(d_used.data() + sequence.place * hidden, sequence.count * hidden,
                d_x.data() + sequence.row * hidden);
  }
  write(d_x.data(), out.d_x);

  const Numbers<Real> x = numbers_of<Real>(used_rows(a.x, batch));
  multiply(transposed(d_products.data(), tokens, 2 * width).data(), x.data(), 2 * width, tokens,
           hidden, both.data());
  write(both.data(), out.d_wkv);
  write(both.data() + width * hidden, out.d_wgate);
}

}  // namespace

void train_cpu(const Train::Arguments& a, const Train::CallShape& s, const Train::Outputs& out) {
  const Sizes sizes{a.cmp_ratio, a.coff, s.C / a.coff};
  const Batch batch(Train::name, a.x, a.cu_seqlens, a.seqused, std::nullopt, sizes.ratio);
  if (a.x.scalar_type() == ScalarType::Double) return train_fp64(a, batch, sizes, out);
  const Products products = project_tokens(a.x, a.wkv, a.wgate, a.ape, batch, sizes);
  const auto* kv = static_cast<const float*>(products.kv.const_data_ptr());
  const auto* scores = static_cast<const float*>(products.scores.const_data_ptr());
  compress_windows(
      batch, sizes,
      [&](int64_t index, int64_t position) -> Token {
        const Sequence& sequence = batch.sequences()[static_cast<std::size_t>(index)];
        const int64_t at = (sequence.place + position) * sizes.width();
        return {kv + at, scores + at};
      },
      {out.cmp_kv, out.softmax_score.mutable_data_ptr<float>(), out.kv.mutable_data_ptr<float>()});
}

void backward_cpu(const Backward::Arguments& a, const Backward::CallShape& s,
                  const Backward::Outputs& out) {
  const Sizes sizes{a.cmp_ratio, a.coff, s.C / a.coff};
  const Batch batch(Backward::name, a.x, a.cu_seqlens, a.seqused, a.start_pos, sizes.ratio);
  if (a.x.scalar_type() == ScalarType::Double) {
    backward_of<double>(a, batch, sizes, out);
  } else {
    backward_of<float>(a, batch, sizes, out);
  }
}

}  // namespace custom_pypto_compressor
