// The gradients of attention. Rounds of tokens are computed in two steps. The first goes token by
// token: it computes the weights P and the gradients dS of the scores, and from these the query's
// gradient. The second adds each token's part, dS^T q + P^T dO, to the gradients of its rows, by
// columns: one thread goes through all tokens of a column in order, so the sums are the same for
// any number of threads.
#include <custom_pypto/dtype.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto_blocks/divide.h>
#include <custom_pypto_blocks/scratch.h>
#include <custom_pypto_sparse_attention/dense.h>
#include <custom_pypto_sparse_attention/gradient_sums.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "attention.h"
#include "cpu/mla_kernels.h"

namespace custom_pypto_sparse_attention {

const custom_pypto::cpu::MatmulKernel& fp32_matmul() {
  return custom_pypto_sparse_flash_mla::kernels().matmul;
}

}  // namespace custom_pypto_sparse_attention

namespace custom_pypto_sparse_flash_mla {
namespace {

using custom_pypto_sparse_attention::Arena;
using custom_pypto_sparse_attention::Dense;
using custom_pypto_sparse_attention::multiply;
using custom_pypto_sparse_attention::plain;
using custom_pypto_sparse_attention::transposed;
using custom_pypto_sparse_attention::widen;

// The memory that the tokens of one round keep between the steps, unless one token needs more.
constexpr int64_t kRoundBytes = 1 << 26;
// Columns of a unit of work of the second step. The same for any number of threads.
constexpr int64_t kUnitColumns = 64;

// Accumulates in Real: double for elements of double, else float.
template <class T>
class AttentionGrad {
 public:
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

  AttentionGrad(const Grad::Arguments& a, const Grad::CallShape& s, const Grad::Outputs& out)
      : s_(s),
        out_(out),
        rows_(Grad::name, ops::visible::arguments(a), ops::visible::call_shape(s), ori_arguments(a),
              cmp_arguments(a)),
        q_(to_contiguous(a.q)),
        dout_(to_contiguous(a.dout)),
        attended_(to_contiguous(a.attn_out)),
        lse_(to_contiguous(a.softmax_lse)),
        sinks_(read_sinks<Real>(a.sinks)),
        scale_(static_cast<Real>(a.softmax_scale.value_or(1 / std::sqrt(double(s.D))))),
        ori_(out.dori_kv, rows_.ori().slots(), s.D),
        cmp_(out.dcmp_kv, rows_.cmp() ? rows_.cmp()->slots() : 0, s.D) {
    offsets_.resize(rows_.queries().size() * static_cast<std::size_t>(s.N));
  }

  void run() {
    for (const Tensor& means : {out_.ori_softmax_l1_norm, out_.cmp_softmax_l1_norm}) {
      std::fill_n(means.mutable_data_ptr<float>(), means.numel(), 0.0f);
    }
    const auto queries = static_cast<int64_t>(rows_.queries().size());
    for (int64_t begin = 0; begin < queries;) {
      int64_t end = begin + 1;
      int64_t bytes = token_bytes(begin);
      while (end < queries && bytes + token_bytes(end) <= kRoundBytes) bytes += token_bytes(end++);
      run_round(begin, end, bytes);
      begin = end;
    }
    ori_.write();
    cmp_.write();
    if (!sinks_.empty()) write_sinks();
  }

 private:
  using Sums = custom_pypto_sparse_attention::GradientSums<T, Real>;

  // A row that a token attends to.
  struct Seen {
    const Sums* sums;
    int64_t slot;
  };

  // The data of a token with `count` rows for the second step.
  struct Kept {
    std::vector<Seen> seen;
    Dense<Real> weights;   // P transposed, [count, N]
    Dense<Real> d_scores;  // dS transposed, [count, N]
    Dense<Real> q;         // [N, D]
    Dense<Real> dout;      // [N, D]

    int64_t cut(char* memory, int64_t count, const Grad::CallShape& s) {
      Arena arena(memory);
      weights = arena.allocate<Real>(count, s.N);
      d_scores = arena.allocate<Real>(count, s.N);
      q = arena.allocate<Real>(s.N, s.D);
      dout = arena.allocate<Real>(s.N, s.D);
      return arena.used();
    }
  };

  // Further data of a token with `count` rows, for the first step only.
  struct Gathered {
    Dense<Real> rows;              // [count, D]
    Dense<Real> d_scores_by_head;  // [N, count]
    Dense<Real> dq;                // [N, D]

    int64_t cut(char* memory, int64_t count, const Grad::CallShape& s) {
      Arena arena(memory);
      rows = arena.allocate<Real>(count, s.D);
      d_scores_by_head = arena.allocate<Real>(s.N, count);
      dq = arena.allocate<Real>(s.N, s.D);
      return arena.used();
    }
  };

  int64_t token_bytes(int64_t query) const { return Kept().cut(nullptr, rows_.most(query), s_); }

  void run_round(int64_t first, int64_t end, int64_t bytes) {
    const auto count = static_cast<std::size_t>(end - first);
    std::vector<Kept> kept(count);
    std::vector<int64_t> starts;
    int64_t start = 0;
    for (int64_t query = first; query < end; start += token_bytes(query++)) starts.push_back(start);
    thread_local Scratch memory;
    char* const of_round = memory.reserve(static_cast<std::size_t>(bytes));
    parallel_for(0, end - first, 1, [&](int64_t begin, int64_t last) {
      for (int64_t i = begin; i < last; ++i) {
        const auto at = static_cast<std::size_t>(i);
        weigh(first + i, of_round + starts[at], kept[at]);
      }
    });
    parallel_for(0, divide_up(s_.D, kUnitColumns), 1, [&](int64_t begin, int64_t last) {
      for (int64_t unit = begin; unit < last; ++unit) add(kept, unit);
    });
  }

  template <class Element>
  const Element* of(const Tensor& tensor, int64_t query, int64_t columns) const {
    return static_cast<const Element*>(tensor.const_data_ptr()) + query * s_.N * columns;
  }

  // The first step for one token: fills `kept` and writes the query's gradient.
  void weigh(int64_t query, char* memory, Kept& kept) {
    std::vector<const T*> sources;
    std::vector<float*> means;  // where the mean weights of listed rows go
    rows_.for_each(query, [&](const Rows& rows, int64_t slot, int64_t index) {
      const bool is_ori = &rows == &rows_.ori();
      kept.seen.push_back({is_ori ? &ori_ : &cmp_, slot});
      sources.push_back(reinterpret_cast<const T*>(rows.row(slot)));
      const Tensor& of_indices = is_ori ? out_.ori_softmax_l1_norm : out_.cmp_softmax_l1_norm;
      means.push_back(index < 0
                          ? nullptr
                          : of_indices.mutable_data_ptr<float>() + query * rows.indices() + index);
    });
    T* const dq = static_cast<T*>(out_.dq.mutable_data_ptr()) + query * s_.N * s_.D;
    const auto count = static_cast<int64_t>(sources.size());
    if (count == 0) {
      std::fill_n(dq, s_.N * s_.D, static_cast<T>(0));
      return;
    }
    thread_local Scratch scratch;
    Gathered g;
    g.cut(scratch.reserve(static_cast<std::size_t>(g.cut(nullptr, count, s_))), count, s_);
    kept.cut(memory, count, s_);
    for (int64_t i = 0; i < count; ++i) {
      widen(sources[static_cast<std::size_t>(i)], s_.D, g.rows.row(i));
    }
    widen(of<T>(q_, query, s_.D), s_.N * s_.D, kept.q.data);
    widen(of<T>(dout_, query, s_.D), s_.N * s_.D, kept.dout.data);
    multiply(g.rows, transposed(kept.q), kept.weights);
    multiply(g.rows, transposed(kept.dout), kept.d_scores);
    set_offsets(query, kept);
    differentiate(query, kept, g, means);
    multiply(g.d_scores_by_head, plain(g.rows), g.dq);
    for (int64_t i = 0; i < s_.N * s_.D; ++i) dq[i] = static_cast<T>(g.dq.data[i]);
  }

  // For each head the sum of dO * O, which all its weights share.
  void set_offsets(int64_t query, const Kept& kept) {
    const T* out = of<T>(attended_, query, s_.D);
    for (int64_t head = 0; head < s_.N; ++head) {
      Real sum = 0;
      for (int64_t i = 0; i < s_.D; ++i) {
        sum += kept.dout.row(head)[i] * static_cast<Real>(out[head * s_.D + i]);
      }
      offsets_[static_cast<std::size_t>(query * s_.N + head)] = sum;
    }
  }

  // Scores become weights; gradients of weights become gradients of scores.
  void differentiate(int64_t query, const Kept& kept, const Gathered& g,
                     const std::vector<float*>& means) const {
    const float* lse = of<float>(lse_, query, 1);
    const Real* offsets = offsets_.data() + query * s_.N;
    for (int64_t row = 0; row < kept.weights.count; ++row) {
      Real* const weight = kept.weights.row(row);
      Real* const d_score = kept.d_scores.row(row);
      Real sum = 0;
      for (int64_t head = 0; head < s_.N; ++head) {
        weight[head] = std::exp(weight[head] * scale_ - static_cast<Real>(lse[head]));
        sum += weight[head];
        d_score[head] = weight[head] * (d_score[head] - offsets[head]) * scale_;
        g.d_scores_by_head.row(head)[row] = d_score[head];
      }
      float* const mean = means[static_cast<std::size_t>(row)];
      if (mean != nullptr) *mean = static_cast<float>(sum / static_cast<Real>(s_.N));
    }
  }

  // The second step for some columns.
  void add(const std::vector<Kept>& kept, int64_t unit) const {
    const int64_t begin = unit * kUnitColumns;
    const int64_t columns = std::min(kUnitColumns, s_.D - begin);
    thread_local Scratch scratch;
    for (const Kept& each : kept) {
      const auto count = static_cast<int64_t>(each.seen.size());
      if (count == 0) continue;
      const auto bytes = static_cast<std::size_t>(2 * count * columns) * sizeof(Real);
      Real* const as_keys = reinterpret_cast<Real*>(scratch.reserve(bytes));
      Real* const as_values = as_keys + count * columns;
      multiply(each.d_scores, {each.q.data + begin, s_.N, columns, s_.D, 1},
               {as_keys, count, columns});
      multiply(each.weights, {each.dout.data + begin, s_.N, columns, s_.D, 1},
               {as_values, count, columns});
      for (int64_t row = 0; row < count; ++row) {
        const Seen& seen = each.seen[static_cast<std::size_t>(row)];
        Real* const to = seen.sums->row(seen.slot) + begin;
        for (int64_t i = 0; i < columns; ++i) {
          to[i] += as_keys[row * columns + i] + as_values[row * columns + i];
        }
      }
    }
  }

  // A sink has the weight exp(sink - lse), and 0 in the place of a value.
  void write_sinks() const {
    const float* lse = lse_.const_data_ptr<float>();
    for (int64_t head = 0; head < s_.N; ++head) {
      double sum = 0;
      for (std::size_t query = 0; query < rows_.queries().size(); ++query) {
        const std::size_t at =
            query * static_cast<std::size_t>(s_.N) + static_cast<std::size_t>(head);
        // Where a token attends to nothing, the offset is 0, and the log-sum-exp -inf.
        if (offsets_[at] == 0) continue;
        sum -= std::exp(double(sinks_[static_cast<std::size_t>(head)]) - double(lse[at])) *
               double(offsets_[at]);
      }
      if (out_.dsinks.scalar_type() == ScalarType::Double) {
        out_.dsinks.mutable_data_ptr<double>()[head] = sum;
      } else {
        out_.dsinks.mutable_data_ptr<float>()[head] = static_cast<float>(sum);
      }
    }
  }

  const Grad::CallShape& s_;
  const Grad::Outputs& out_;
  VisibleRows rows_;
  Tensor q_;
  Tensor dout_;
  Tensor attended_;
  Tensor lse_;
  std::vector<Real> sinks_;
  Real scale_;
  Sums ori_;
  Sums cmp_;
  std::vector<Real> offsets_;  // [queries, N]
};

}  // namespace

Grad::Outputs allocate(const Grad::Arguments& a) {
  const auto like = [&](const std::optional<Tensor>& argument) {
    return argument ? empty_like_contiguous(*argument) : empty({0}, a.q);
  };
  const auto means = [&](const std::optional<Tensor>& indices) {
    const std::vector<int64_t> none{0};
    return indices ? empty(indices->sizes(), ScalarType::Float, a.q)
                   : empty(none, ScalarType::Float, a.q);
  };
  return {empty_like_contiguous(a.q),
          like(a.ori_kv),
          like(a.cmp_kv),
          a.sinks ? empty_like_contiguous(*a.sinks) : means({}),
          means(a.ori_sparse_indices),
          means(a.cmp_sparse_indices)};
}

void fill_zeros(const Grad::Outputs& out) {
  for (Tensor each : {out.dq, out.dori_kv, out.dcmp_kv, out.dsinks, out.ori_softmax_l1_norm,
                      out.cmp_softmax_l1_norm}) {
    torch::stable::fill_(each, 0);
  }
}

Grad::Outputs attention_grad(const Grad::Arguments& a, const Grad::CallShape& s) {
  Grad::Outputs out = allocate(a);
  if (a.q.numel() == 0) {
    fill_zeros(out);
    return out;
  }
  visit_dtype<custom_pypto::BFloat16, Half, float, double>(
      Grad::name, "q", a.q.scalar_type(),
      [&](auto tag) { AttentionGrad<typename decltype(tag)::type>(a, s, out).run(); });
  return out;
}

}  // namespace custom_pypto_sparse_flash_mla
