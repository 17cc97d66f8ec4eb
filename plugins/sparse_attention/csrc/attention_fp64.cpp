// Attention in fp64: scores, softmax and weighted sum of one token after the other.
#include <custom_pypto/parallel.h>

#include <cmath>
#include <limits>

#include "attention.h"
#include "attention_row.h"

namespace custom_pypto_sparse_attention {

void attend_fp64(const char* op, const AttentionArguments& a, const AttentionSizes& s,
                 const Tensor& out, float* log_sum_exp) {
  const Selection selection = selection_of(op, a, s);
  const PagedCache kv_cache = keys_of(op, "kv_cache", a.kv_cache);
  const PagedCache kr_cache = keys_of(op, "kr_cache", a.kr_cache);
  const Tensor query = to_contiguous(a.query);
  const Tensor query_rope = to_contiguous(a.query_rope);
  double* const result = out.mutable_data_ptr<double>();
  const auto rows = static_cast<int64_t>(selection.rows().size());
  parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> keys(static_cast<std::size_t>(s.K * (s.L + s.R)));
    std::vector<double> values(static_cast<std::size_t>(s.K * s.L));
    std::vector<double> queries(static_cast<std::size_t>(s.N1 * (s.L + s.R)));
    std::vector<double> scores(static_cast<std::size_t>(s.N1 * s.K));
    for (int64_t row = begin; row < end; ++row) {
      int64_t count = 0;
      selection.for_each(row, [&](int64_t block, int64_t token) {
        const auto* latent = reinterpret_cast<const double*>(kv_cache.row(block, token));
        const auto* rope = reinterpret_cast<const double*>(kr_cache.row(block, token));
        double* const key = keys.data() + count * (s.L + s.R);
        std::copy_n(latent, s.L, key);
        std::copy_n(rope, s.R, key + s.L);
        std::copy_n(latent, s.L, values.data() + count * s.L);
        ++count;
      });
      const Dense<double> of_row{queries.data(), s.N1, s.L + s.R};
      widen(query.const_data_ptr<double>() + row * s.N1 * s.L, s.L,
            query_rope.const_data_ptr<double>() + row * s.N1 * s.R, of_row);
      const Dense<double> weights{scores.data(), s.N1, count};
      multiply(of_row, transposed(Dense<double>{keys.data(), count, s.L + s.R}), weights);
      for (int64_t head = 0; head < s.N1; ++head) {
        double* const weight = weights.row(head);
        double maximum = -std::numeric_limits<double>::infinity();
        for (int64_t i = 0; i < count; ++i) {
          weight[i] *= a.scale;
          maximum = std::max(maximum, weight[i]);
        }
        double sum = 0;
        for (int64_t i = 0; i < count; ++i) sum += weight[i] = std::exp(weight[i] - maximum);
        for (int64_t i = 0; i < count; ++i) weight[i] /= sum;
        if (log_sum_exp != nullptr) {
          log_sum_exp[row * s.N1 + head] = static_cast<float>(maximum + std::log(sum));
        }
      }
      multiply(weights, plain(Dense<double>{values.data(), count, s.L}),
               {result + row * s.N1 * s.L, s.N1, s.L});
    }
  });
}

}  // namespace custom_pypto_sparse_attention
