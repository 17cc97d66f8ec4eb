// The gradients of attention. Rounds of tokens are computed in two steps. The first goes token by
// token: it computes the weights P and the gradients dS of the scores, and from these the query's
// gradient. The second adds each token's part to the gradients of its keys and values, by columns:
// one thread goes through all tokens of a column in order, so the sums are the same for any number
// of threads.
#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto_blocks/divide.h>
#include <custom_pypto_blocks/scratch.h>
#include <custom_pypto_sparse_attention/gradient_sums.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "attention.h"
#include "attention_row.h"
#include "selection.h"
#include "weight_order.h"

namespace custom_pypto_sparse_attention {

const cpu::MatmulKernel& fp32_matmul() { return matmul(Element::fp32); }

namespace {

using Op = ops::npu_sparse_flash_attention_grad;

// The memory that the tokens of one round keep between the steps, unless one token needs more.
constexpr int64_t kRoundBytes = 1 << 26;
// Columns of a unit of work of the second step. The same for any number of threads.
constexpr int64_t kUnitColumns = 64;

// Accumulates in Real: double for elements of double, else float.
template <class T>
class AttentionGrad {
 public:
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

  AttentionGrad(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out)
      : a_(a),
        s_(s),
        out_(out),
        selection_({Op::name, layout_of(a, s), a.query, a.key, a.sparse_indices, a.block_table,
                    "actual_seq_qlen", a.actual_seq_qlen, "actual_seq_kvlen", a.actual_seq_kvlen,
                    a.sparse_mode}),
        key_(keys_of(ops::npu_sparse_flash_attention_grad::name, "key", a.key)),
        value_(keys_of(ops::npu_sparse_flash_attention_grad::name, "value", a.value)),
        key_rope_(keys_of(ops::npu_sparse_flash_attention_grad::name, "key_rope", a.key_rope)),
        query_(to_contiguous(a.query)),
        query_rope_(to_contiguous(a.query_rope)),
        d_out_(to_contiguous(a.d_out)),
        attended_(to_contiguous(a.out)),
        maximum_(to_contiguous(a.softmax_max)),
        sum_(to_contiguous(a.softmax_sum)),
        d_key_(out.d_key, key_.slots(), s.L),
        d_value_(out.d_value, key_.slots(), s.L),
        d_key_rope_(out.d_key_rope, key_.slots(), s.R) {
    if (a.d_lse.has_value()) d_lse_ = to_contiguous(*a.d_lse);
  }

  void run() {
    const auto rows = static_cast<int64_t>(selection_.rows().size());
    const int64_t each = row_bytes(selection_.listed());
    const int64_t most = std::max(kRoundBytes / std::max<int64_t>(each, 1), num_threads());
    for (int64_t begin = 0; begin < rows; begin += most) {
      run_round(begin, std::min(most, rows - begin));
    }
    d_key_.write();
    d_value_.write();
    d_key_rope_.write();
  }

 private:
  using Sums = GradientSums<T, Real>;

  // The data of a token with `count` keys for the second step.
  struct Kept {
    std::vector<int64_t> slots;
    Dense<Real> weights;   // P transposed, [count, N1]
    Dense<Real> d_scores;  // dS transposed, [count, N1]
    Dense<Real> query;     // [N1, L + R]
    Dense<Real> d_out;     // [N1, L]

    int64_t cut(char* memory, int64_t count, const Op::CallShape& s) {
      Arena arena(memory);
      weights = arena.allocate<Real>(count, s.N1);
      d_scores = arena.allocate<Real>(count, s.N1);
      query = arena.allocate<Real>(s.N1, s.L + s.R);
      d_out = arena.allocate<Real>(s.N1, s.L);
      return arena.used();
    }
  };

  // Further data of a token with `count` keys, for the first step only.
  struct Gathered {
    Dense<Real> key;               // [count, L + R]
    Dense<Real> value;             // [count, L]
    Dense<Real> d_scores_by_head;  // [N1, count]
    Dense<Real> d_query;           // [N1, L + R]
    Dense<Real> offset;            // [1, N1], of the gradients of the weights

    int64_t cut(char* memory, int64_t count, const Op::CallShape& s) {
      Arena arena(memory);
      key = arena.allocate<Real>(count, s.L + s.R);
      value = arena.allocate<Real>(count, s.L);
      d_scores_by_head = arena.allocate<Real>(s.N1, count);
      d_query = arena.allocate<Real>(s.N1, s.L + s.R);
      offset = arena.allocate<Real>(1, s.N1);
      return arena.used();
    }
  };

  static KeyLayout layout_of(const Op::Arguments& a, const Op::CallShape& s) {
    if (a.paged) return KeyLayout::paged;
    return s.layout == Op::Layout::BSND ? KeyLayout::bsnd : KeyLayout::tnd;
  }

  int64_t row_bytes(int64_t count) const { return Kept().cut(nullptr, count, s_); }

  void run_round(int64_t first, int64_t rows) {
    std::vector<Kept> kept(static_cast<std::size_t>(rows));
    const int64_t each = row_bytes(selection_.listed());
    thread_local Scratch memory;
    char* const of_round = memory.reserve(static_cast<std::size_t>(rows * each));
    parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        weigh(first + row, of_round + row * each, kept[static_cast<std::size_t>(row)]);
      }
    });
    const int64_t latent_units = divide_up(s_.L, kUnitColumns);
    const int64_t rope_units = divide_up(s_.R, kUnitColumns);
    parallel_for(0, 2 * latent_units + rope_units, 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        if (unit < latent_units) {
          add(kept, unit, d_key_, &Kept::d_scores, &Kept::query, 0);
        } else if (unit < 2 * latent_units) {
          add(kept, unit - latent_units, d_value_, &Kept::weights, &Kept::d_out, 0);
        } else {
          add(kept, unit - 2 * latent_units, d_key_rope_, &Kept::d_scores, &Kept::query, s_.L);
        }
      }
    });
  }

  const T* of(const Tensor& tensor, int64_t row, int64_t columns) const {
    return static_cast<const T*>(tensor.const_data_ptr()) + row * s_.N1 * columns;
  }

  // The first step for one token: fills `kept` and writes the query's gradient.
  void weigh(int64_t row, char* memory, Kept& kept) const {
    const auto slot_of = [&](int64_t block, int64_t token) {
      return block * key_.block_size + token;
    };
    selection_.for_each(
        row, [&](int64_t block, int64_t token) { kept.slots.push_back(slot_of(block, token)); });
    const auto count = static_cast<int64_t>(kept.slots.size());
    if (count == 0) return write_query(row, nullptr);
    thread_local Scratch scratch;
    Gathered g;
    g.cut(scratch.reserve(static_cast<std::size_t>(g.cut(nullptr, count, s_))), count, s_);
    kept.cut(memory, count, s_);
    gather(kept.slots, g);
    widen(of(query_, row, s_.L), s_.L, of(query_rope_, row, s_.R), kept.query);
    widen(of(d_out_, row, s_.L), s_.N1 * s_.L, kept.d_out.data);
    multiply(g.key, transposed(kept.query), kept.weights);
    multiply(g.value, transposed(kept.d_out), kept.d_scores);
    set_offset(row, kept, g.offset.data);
    differentiate(row, kept, g);
    multiply(g.d_scores_by_head, plain(g.key), g.d_query);
    write_query(row, g.d_query.data);
  }

  void gather(const std::vector<int64_t>& slots, const Gathered& g) const {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto index = static_cast<int64_t>(i);
      Real* const key = g.key.row(index);
      widen(reinterpret_cast<const T*>(key_.row(slots[i])), s_.L, key);
      widen(reinterpret_cast<const T*>(key_rope_.row(slots[i])), s_.R, key + s_.L);
      widen(reinterpret_cast<const T*>(value_.row(slots[i])), s_.L, g.value.row(index));
    }
  }

  // For each head the sum of dO * O, which all its weights share since their sum is 1, minus the
  // gradient of the log-sum-exp.
  void set_offset(int64_t row, const Kept& kept, Real* offset) const {
    const T* out = of(attended_, row, s_.L);
    const float* d_lse = d_lse_.has_value() ? d_lse_->const_data_ptr<float>() : nullptr;
    for (int64_t head = 0; head < s_.N1; ++head) {
      Real sum = 0;
      for (int64_t i = 0; i < s_.L; ++i) {
        sum += kept.d_out.row(head)[i] * static_cast<Real>(out[head * s_.L + i]);
      }
      if (d_lse != nullptr) sum -= static_cast<Real>(d_lse[row * s_.N1 + head]);
      offset[head] = sum;
    }
  }

  // Scores become weights; gradients of weights become gradients of scores.
  void differentiate(int64_t row, const Kept& kept, const Gathered& g) const {
    const float* maximum = maximum_.const_data_ptr<float>() + row * s_.N1;
    const float* sum = sum_.const_data_ptr<float>() + row * s_.N1;
    const Real scale = static_cast<Real>(a_.scale_value);
    for (int64_t key = 0; key < kept.weights.count; ++key) {
      Real* const weight = kept.weights.row(key);
      Real* const d_score = kept.d_scores.row(key);
      for (int64_t head = 0; head < s_.N1; ++head) {
        weight[head] = std::exp(weight[head] * scale - static_cast<Real>(maximum[head])) /
                       static_cast<Real>(sum[head]);
        d_score[head] = weight[head] * (d_score[head] - g.offset.data[head]) * scale;
        g.d_scores_by_head.row(head)[key] = d_score[head];
      }
    }
  }

  // From a gradient [N1, L + R]; zeros if it is null.
  void write_query(int64_t row, const Real* gradient) const {
    T* const latent = static_cast<T*>(out_.d_query.mutable_data_ptr()) + row * s_.N1 * s_.L;
    T* const rope = static_cast<T*>(out_.d_query_rope.mutable_data_ptr()) + row * s_.N1 * s_.R;
    if (gradient == nullptr) {
      std::fill_n(latent, s_.N1 * s_.L, static_cast<T>(0));
      std::fill_n(rope, s_.N1 * s_.R, static_cast<T>(0));
      return;
    }
    for (int64_t head = 0; head < s_.N1; ++head) {
      const Real* from = gradient + head * (s_.L + s_.R);
      for (int64_t i = 0; i < s_.L; ++i) latent[head * s_.L + i] = static_cast<T>(from[i]);
      for (int64_t i = 0; i < s_.R; ++i) rope[head * s_.R + i] = static_cast<T>(from[s_.L + i]);
    }
  }

  // The second step for some columns: each token's left [count, N1] @ right[:, columns], added to
  // its keys' sums. The columns of `right` begin at `first`.
  void add(const std::vector<Kept>& kept, int64_t unit, const Sums& sums, Dense<Real> Kept::* left,
           Dense<Real> Kept::* right, int64_t first) const {
    const int64_t begin = unit * kUnitColumns;
    const int64_t columns = std::min(kUnitColumns, sums.columns - begin);
    thread_local Scratch scratch;
    const auto bytes = static_cast<std::size_t>(selection_.listed() * columns) * sizeof(Real);
    Real* const added = reinterpret_cast<Real*>(scratch.reserve(bytes));
    for (const Kept& each : kept) {
      const Dense<Real>& factors = each.*right;
      const auto count = static_cast<int64_t>(each.slots.size());
      if (count == 0) continue;
      multiply(each.*left,
               {factors.data + first + begin, factors.count, columns, factors.columns, 1},
               {added, count, columns});
      for (int64_t key = 0; key < count; ++key) {
        Real* to = sums.data + each.slots[static_cast<std::size_t>(key)] * sums.columns + begin;
        for (int64_t i = 0; i < columns; ++i) to[i] += added[key * columns + i];
      }
    }
  }

  const Op::Arguments& a_;
  const Op::CallShape& s_;
  const Op::Outputs& out_;
  Selection selection_;
  PagedCache key_;
  PagedCache value_;
  PagedCache key_rope_;
  Tensor query_;
  Tensor query_rope_;
  Tensor d_out_;
  Tensor attended_;
  Tensor maximum_;
  Tensor sum_;
  std::optional<Tensor> d_lse_;
  Sums d_key_;
  Sums d_value_;
  Sums d_key_rope_;
};

}  // namespace

void attention_grad(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out) {
  visit_dtype<custom_pypto::BFloat16, Half, float, double>(
      Op::name, "query", a.query.scalar_type(),
      [&](auto tag) { AttentionGrad<typename decltype(tag)::type>(a, s, out).run(); });
}

}  // namespace custom_pypto_sparse_attention
