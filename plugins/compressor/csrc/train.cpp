// The form for training, which computes as npu_compressor does, and its gradient: in fp32, or in
// fp64 if x is.
#include <custom_pypto/empty.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/projection.h>

#include "registered.h"
#include "rows.h"

namespace custom_pypto_compressor {
namespace {

using namespace custom_pypto;
using torch::stable::copy_;
using torch::stable::zero_;
using Train = ops::npu_compressor_train;
using Backward = ops::npu_compressor_backward;

bool is_fp64(const Tensor& tensor) { return tensor.scalar_type() == ScalarType::Double; }

// a [rows, depth] @ b [depth, columns], both fp32 or fp64. Sums are added in order.
Tensor multiply(const Tensor& of_any_strides, const Tensor& b) {
  const Tensor a = to_contiguous(of_any_strides);
  if (is_fp64(a)) return multiply_fp64(a, b);
  const Tensor out = empty({a.size(0), b.size(1)}, a);
  project(kernels().matmul, {a.const_data_ptr(), a.size(0), a.size(1)}, weight_of_matrix(b),
          {out.mutable_data_ptr(), a.size(0), b.size(1)});
  return out;
}

template <class Real>
Tensor zeros(int64_t rows, int64_t columns, const Tensor& like) {
  Tensor made = empty({rows, columns}, dtype_of<Real>, like);
  return zero_(made);
}

// The rows [first, first + count) of a matrix.
Tensor rows_of(Tensor matrix, int64_t first, int64_t count) {
  return torch::stable::narrow(matrix, 0, first, count);
}

void copy(Tensor to, const Tensor& from) { copy_(to, from); }

template <class Real>
void train(const Train::Arguments& a, const Batch& batch, const Sizes& sizes,
           const Train::Outputs& out) {
  const Products products = project_tokens(a.x, a.wkv, a.wgate, a.ape, batch, sizes);
  const auto* kv = static_cast<const Real*>(products.kv.const_data_ptr());
  const auto* scores = static_cast<const Real*>(products.scores.const_data_ptr());
  for (Tensor each : {out.cmp_kv, out.softmax_score, out.kv}) zero_(each);
  compress_windows<Real>(batch, sizes,
                         [&](int64_t index, int64_t position) -> Token<Real> {
                           const Sequence& sequence =
                               batch.sequences[static_cast<std::size_t>(index)];
                           const int64_t at = (sequence.place + position) * sizes.width();
                           return {kv + at, scores + at};
                         },
                         {out.cmp_kv, static_cast<Real*>(out.softmax_score.mutable_data_ptr()),
                          static_cast<Real*>(out.kv.mutable_data_ptr())});
}

template <class Real>
void backward(const Backward::Arguments& a, const Batch& batch, const Sizes& sizes,
              const Backward::Outputs& out) {
  const int64_t width = sizes.width();
  const int64_t channels = sizes.channels;
  const auto real = [](const Tensor& tensor) { return to_dtype(tensor, dtype_of<Real>); };
  const std::vector<Real> d_rows = read_floats<Real>(a.d_cmp_kv);
  const Tensor contiguous_weights = to_contiguous(a.softmax_score);
  const Tensor contiguous_kv = to_contiguous(a.kv);
  const auto* weights = static_cast<const Real*>(contiguous_weights.const_data_ptr());
  const auto* kv = static_cast<const Real*>(contiguous_kv.const_data_ptr());

  // The gradients of each used token's kv and score, side by side.
  const Tensor d_products = zeros<Real>(batch.tokens, 2 * width, a.x);
  const Tensor d_ape = zeros<Real>(sizes.ratio, width, a.x);
  auto* const products = static_cast<Real*>(d_products.mutable_data_ptr());
  auto* const bias = static_cast<Real*>(d_ape.mutable_data_ptr());
  for (const Window& window : batch.windows) {
    const Sequence& sequence = batch.sequences[static_cast<std::size_t>(window.sequence)];
    const Real* const d_row = d_rows.data() + window.row * channels;
    const int64_t first = window.row * sizes.tokens() * channels;
    // For each channel, the sum over the row's tokens of weight times gradient of the weight.
    std::vector<Real> sums(static_cast<std::size_t>(channels));
    Real* const sum = sums.data();
    for (int64_t from = first; from < first + sizes.tokens() * channels; from += channels) {
      for (int64_t c = 0; c < channels; ++c) sum[c] += weights[from + c] * d_row[c] * kv[from + c];
    }
    for (int64_t k = 0; k < sizes.tokens(); ++k) {
      const int64_t position = (window.number - sizes.parts + 1) * sizes.ratio + k;
      if (position < sequence.start) continue;
      const int64_t token = sequence.place + position - sequence.start;
      const int64_t column = k / sizes.ratio * channels;
      Real* const d_kv = products + token * 2 * width + column;
      Real* const d_bias = bias + position % sizes.ratio * width + column;
      const int64_t from = first + k * channels;
      for (int64_t c = 0; c < channels; ++c) {
        d_kv[c] = weights[from + c] * d_row[c];
        d_kv[width + c] = weights[from + c] * (d_row[c] * kv[from + c] - sum[c]);
        d_bias[c] += d_kv[width + c];
      }
    }
  }
  copy(out.d_ape, d_ape);

  const Tensor both =
      call_op<Tensor>("aten::cat", "", std::vector<Tensor>{real(a.wkv), real(a.wgate)}, 0);
  const Tensor d_used = multiply(d_products, both);
  Tensor d_x = out.d_x;
  zero_(d_x);
  d_x = torch::stable::view(d_x, {-1, a.x.size(-1)});
  for (const Sequence& sequence : batch.sequences) {
    copy(rows_of(d_x, sequence.row, sequence.count),
         rows_of(d_used, sequence.place, sequence.count));
  }
  const Tensor d_weights = multiply(torch::stable::transpose(d_products, 0, 1),
                                    to_contiguous(real(used_rows(a.x, batch))));
  copy(out.d_wkv, rows_of(d_weights, 0, width));
  copy(out.d_wgate, rows_of(d_weights, width, width));
}

}  // namespace

void train_cpu(const Train::Arguments& a, const Train::CallShape& s, const Train::Outputs& out) {
  const Sizes sizes{a.cmp_ratio, a.coff, s.C / a.coff};
  const Batch batch(Train::name, a.x, a.cu_seqlens, a.seqused, std::nullopt, sizes.ratio);
  (is_fp64(a.x) ? &train<double> : &train<float>)(a, batch, sizes, out);
}

void backward_cpu(const Backward::Arguments& a, const Backward::CallShape& s,
                  const Backward::Outputs& out) {
  const Sizes sizes{a.cmp_ratio, a.coff, s.C / a.coff};
  const Batch batch(Backward::name, a.x, a.cu_seqlens, a.seqused, a.start_pos, sizes.ratio);
  (is_fp64(a.x) ? &backward<double> : &backward<float>)(a, batch, sizes, out);
}

}  // namespace custom_pypto_compressor
