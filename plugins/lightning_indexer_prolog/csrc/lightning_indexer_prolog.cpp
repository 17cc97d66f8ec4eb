// npu_lightning_indexer_prolog_pto on the CPU, and its registration. Products of int8 numbers are
// exact; everything else is in fp32, rounded where README.md says so.
#include <custom_pypto/dtype.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/norms.h>
#include <custom_pypto_blocks/paged_cache.h>
#include <custom_pypto_blocks/projection.h>
#include <custom_pypto_blocks/rope.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/prolog_kernels.h"
#include "npu/prolog.h"
#include "ops.h"

namespace custom_pypto_lightning_indexer_prolog {
namespace {

using namespace custom_pypto;
using Op = ops::npu_lightning_indexer_prolog_pto;

// Rows of a head that are worth another thread.
constexpr int64_t kUnitRows = 16;

// Making one checks all values and writes nothing; run() fills the outputs and writes the caches.
class Prolog {
 public:
  // Throws std::runtime_error that names the argument. Borrows the arguments.
  Prolog(const Op::Arguments& a, const Op::CallShape& s)
      : a_(a),
        s_(s),
        x_(to_contiguous(a.token_x)),
        q_norm_(to_contiguous(a.q_norm)),
        token_scales_(read_floats(a.q_norm_scale)),
        column_scales_(read_floats(a.wq_b_scale)),
        angles_(a.sin_idx_rope, a.cos_idx_rope, s.R),
        keys_(cache_of(Op::name, "idx_k_cache", a.idx_k_cache, CacheUse::written)),
        scales_(cache_of(Op::name, "idx_k_scale_cache", a.idx_k_scale_cache, CacheUse::written)),
        slots_(read_slots(Op::name, "idx_k_cache_index", a.idx_k_cache_index, keys_)) {}

  void run(const Op::Outputs& outputs) const {
    if (s_.T == 0) return;
    fill_queries(outputs);
    fill_weights(outputs);
    fill_caches();
  }

 private:
  ConstRows x() const { return {x_.const_data_ptr(), s_.T, s_.H}; }

  void fill_queries(const Op::Outputs& outputs) const {
    const int64_t rows = s_.T * s_.N;
    const Tensor sums = empty({s_.T, s_.N * s_.D}, ScalarType::Int, x_);
    project(kernels().int8, {q_norm_.const_data_ptr(), s_.T, s_.Q}, weight_of_matrix(a_.wq_b),
            {sums.mutable_data_ptr(), s_.T, s_.N * s_.D});

    const Tensor rotated = empty({rows, s_.D}, ScalarType::BFloat16, x_);
    const Tensor mixed = empty({rows, s_.D}, ScalarType::BFloat16, x_);
    const auto* sums_data = static_cast<const int32_t*>(sums.const_data_ptr());
    auto* rotated_data = static_cast<BFloat16*>(rotated.mutable_data_ptr());
    auto* mixed_data = static_cast<BFloat16*>(mixed.mutable_data_ptr());
    auto* query = static_cast<int8_t*>(outputs.query.mutable_data_ptr());
    auto* scales = static_cast<Half*>(outputs.query_scale.mutable_data_ptr());
    parallel_for(0, rows, kUnitRows, [&](int64_t begin, int64_t end) {
      std::vector<float> scratch(static_cast<std::size_t>(s_.D + s_.R));
      for (int64_t row = begin; row < end; ++row) {
        const int64_t token = row / s_.N;
        kernels().rotate_head(
            {sums_data + row * s_.D, token_scales_[static_cast<std::size_t>(token)],
             column_scales_.data() + row % s_.N * s_.D, s_.D, s_.R, angles_.sin(token),
             angles_.cos(token), rotated_data + row * s_.D, scratch.data()});
      }
      project_here(kernels().bf16, {rotated_data + begin * s_.D, end - begin, s_.D},
                   weight_of_matrix(a_.hadamard_q), {mixed_data + begin * s_.D, end - begin, s_.D});
      for (int64_t row = begin; row < end; ++row) {
        kernels().quantise(mixed_data + row * s_.D, s_.D, query + row * s_.D, scales + row,
                           scratch.data());
      }
    });
  }

  void fill_caches() const {
    const Tensor products = empty({s_.T, s_.D}, ScalarType::Float, x_);
    project(kernels().bf16, x(), weight_of_matrix(a_.wk), {products.mutable_data_ptr(), s_.T, s_.D},
            true);
    const std::vector<float> gamma = read_floats(a_.ln_gamma_k);
    const std::vector<float> beta = read_floats(a_.ln_beta_k);
    const std::vector<float> hadamard = read_floats(a_.hadamard_k);
    const Weight mixer = weight_of_matrix(hadamard.data(), s_.D, s_.D);

    const auto size = static_cast<std::size_t>(s_.T * s_.D);
    std::vector<int8_t> keys(size);
    std::vector<Half> scales(static_cast<std::size_t>(s_.T));
    std::vector<float> rotated(size);
    std::vector<float> mixed(size);
    const auto* products_data = static_cast<const float*>(products.const_data_ptr());
    parallel_for(0, s_.T, kUnitRows, [&](int64_t begin, int64_t end) {
      const auto width = static_cast<std::size_t>(s_.D);
      std::vector<BFloat16> normed(width);
      std::vector<BFloat16> row(width);
      std::vector<float> scratch(width);
      for (int64_t token = begin; token < end; ++token) {
        layer_norm(products_data + token * s_.D, s_.D, gamma.data(), beta.data(),
                   static_cast<float>(a_.layernorm_epsilon_k), normed.data());
        row = normed;
        angles_.rotate(token, normed.data(), row.data());
        std::copy(row.begin(), row.end(), rotated.data() + token * s_.D);
      }
      project_here(kernels().fp32, {rotated.data() + begin * s_.D, end - begin, s_.D}, mixer,
                   {mixed.data() + begin * s_.D, end - begin, s_.D});
      for (int64_t token = begin; token < end; ++token) {
        kernels().round_to_bf16(mixed.data() + token * s_.D, s_.D, row.data());
        kernels().quantise(row.data(), s_.D, keys.data() + token * s_.D,
                           &scales[static_cast<std::size_t>(token)], scratch.data());
      }
    });
    // In the order of the tokens: of equal slots the last one wins.
    for (std::size_t token = 0; token < slots_.size(); ++token) {
      std::memcpy(keys_.row(slots_[token]), keys.data() + static_cast<int64_t>(token) * s_.D,
                  static_cast<std::size_t>(s_.D));
      std::memcpy(scales_.row(slots_[token]), &scales[token], sizeof(Half));
    }
  }

  void fill_weights(const Op::Outputs& outputs) const {
    const Tensor products = empty({s_.T, s_.N}, ScalarType::BFloat16, x_);
    project(kernels().bf16, x(), weight_of_matrix(a_.weights_proj),
            {products.mutable_data_ptr(), s_.T, s_.N});
    const auto heads_factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s_.N)));
    const auto size_factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s_.D)));
    const auto* from = static_cast<const BFloat16*>(products.const_data_ptr());
    auto* to = static_cast<Half*>(outputs.weights.mutable_data_ptr());
    for (int64_t i = 0; i < s_.T * s_.N; ++i) {
      to[i] = static_cast<Half>(static_cast<float>(from[i]) * heads_factor * size_factor);
    }
  }

  const Op::Arguments& a_;
  const Op::CallShape& s_;
  Tensor x_;
  Tensor q_norm_;
  std::vector<float> token_scales_;   // [T]
  std::vector<float> column_scales_;  // [N * D]
  Angles angles_;
  PagedCache keys_;
  PagedCache scales_;
  std::vector<int64_t> slots_;
};

void prolog_cpu(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& outputs) {
  Prolog(a, s).run(outputs);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Op>().impl<&prolog_cpu>("CPU").impl<&npu::prolog>("PrivateUse1");
}

}  // namespace custom_pypto_lightning_indexer_prolog
