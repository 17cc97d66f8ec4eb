// The keys that each row may select from, the scores of those that it selected, and their
// gradients.
#include "selected_rows.h"

#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/divide.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace custom_pypto_lightning_indexer {
namespace {

using Grad = ops::npu_lightning_indexer_grad;

std::vector<KeyRange> ranges_of(const Call& call, bool is_tnd) {
  const auto& s = call.sizes;
  std::vector<int64_t> keys;
  read_key_lengths(call, keys);
  // BSND rows beyond a sequence's length list no keys.
  std::vector<int64_t> rows(keys.size(), s.S1);
  if (is_tnd) read_query_lengths(call, rows);
  std::vector<KeyRange> ranges;
  int64_t first = 0;
  for (std::size_t b = 0; b < rows.size(); ++b) {
    ranges.insert(ranges.end(), static_cast<std::size_t>(rows[b]), {first, keys[b]});
    first += is_tnd ? keys[b] : s.S2;
  }
  // TND rows beyond the last sequence too: a position in one is an error.
  if (is_tnd) ranges.resize(static_cast<std::size_t>(s.T), {0, 0});
  return ranges;
}

template <class T>
void score(const Selection& selection, const Tensor& values) {
  using Real = typename SelectedRows<T>::Real;
  const SelectedRows<T> rows(selection);
  T* const out = values.mutable_data_ptr<T>();
  parallel_for(0, rows.units(), 1, [&](int64_t begin, int64_t end) {
    std::vector<Real> query(static_cast<std::size_t>(selection.group * selection.depth));
    std::vector<Real> transposed(static_cast<std::size_t>(selection.depth * rows.lanes()));
    std::vector<Real> key(static_cast<std::size_t>(selection.depth));
    std::vector<Real> dots(static_cast<std::size_t>(rows.lanes()));
    for (int64_t unit = begin; unit < end; ++unit) {
      rows.load_query(unit, query.data(), transposed.data());
      T* const of_row = out + unit * selection.count;
      std::fill_n(of_row, selection.count, static_cast<T>(-std::numeric_limits<float>::infinity()));
      rows.for_each(unit, [&](int64_t i, int64_t at) {
        rows.load_key(at, key.data());
        rows.multiply(transposed.data(), key.data(), dots.data());
        Real sum = 0;
        for (int64_t head = 0; head < selection.group; ++head) {
          const Real dot = dots[static_cast<std::size_t>(head)];
          sum += rows.weights(unit)[head] * (dot < 0 ? Real{0} : dot);
        }
        of_row[i] = static_cast<T>(sum);
      });
    }
  });
}

constexpr int64_t kNone = -1;  // the size of a dim that the op does not have
// The memory that the rows of one round keep between the steps, unless one row needs more.
constexpr int64_t kRoundBytes = 1 << 26;
// Columns of a unit of work of the second step. The same for any number of threads.
constexpr int64_t kUnitColumns = 32;

template <class Real>
void write(const char* op, const std::vector<Real>& values, const Tensor& tensor) {
  visit_numbers(op, "weights", tensor, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::transform(values.begin(), values.end(), tensor.mutable_data_ptr<T>(),
                   [](Real value) { return static_cast<T>(value); });
  });
}

// Rounds of rows are computed in two steps. The first goes row by row: it computes the gradients of
// query and weights, and the factors with which the queries are added to the gradients of the keys.
// The second computes these sums by columns: one thread goes through all rows of a column in order,
// so the sums are the same for any number of threads.
template <class T>
class Gradients {
 public:
  using Real = typename SelectedRows<T>::Real;

  Gradients(const Selection& selection, const Tensor& dy, const Grad::Outputs& out)
      : selection_(selection),
        rows_(selection),
        dy_(dy),
        out_(out),
        d_weights_(static_cast<std::size_t>(selection.weights.numel())),
        d_key_(static_cast<std::size_t>(selection.key.numel())) {}

  void run() {
    // Without rows other sizes may be so large that their product overflows.
    if (rows_.units() != 0) run_rounds();
    write(selection_.op, d_weights_, out_.d_weights);
    write(selection_.op, d_key_, out_.d_key);
  }

 private:
  void run_rounds() {
    const int64_t bytes = selection_.group * (selection_.count + selection_.depth) *
                          static_cast<int64_t>(sizeof(Real));
    const int64_t most = std::max(kRoundBytes / std::max<int64_t>(bytes, 1), num_threads());
    for (int64_t begin = 0; begin < rows_.units(); begin += most) {
      run_round(begin, std::min(most, rows_.units() - begin));
    }
  }

  // A row's data for the second step.
  struct Kept {
    std::vector<int64_t> keys;
    std::vector<Real> factors;  // [keys, group]
    std::vector<Real> query;    // [group, depth]
  };

  void run_round(int64_t first, int64_t count) {
    std::vector<Kept> kept(static_cast<std::size_t>(count));
    parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        differentiate(first + i, kept[static_cast<std::size_t>(i)]);
      }
    });
    parallel_for(0, divide_up(selection_.depth, kUnitColumns), 1, [&](int64_t begin, int64_t end) {
      const int64_t column = begin * kUnitColumns;
      const int64_t columns = std::min(selection_.depth, end * kUnitColumns) - column;
      for (const Kept& each : kept) {
        for (std::size_t i = 0; i < each.keys.size(); ++i) {
          Real* const to = d_key_.data() + each.keys[i] * selection_.depth + column;
          for (int64_t head = 0; head < selection_.group; ++head) {
            const Real factor = each.factors[i * static_cast<std::size_t>(selection_.group) +
                                             static_cast<std::size_t>(head)];
            if (factor == 0) continue;
            add_scaled(columns, factor, each.query.data() + head * selection_.depth + column, to);
          }
        }
      }
    });
  }

  // The first step for one row.
  void differentiate(int64_t unit, Kept& kept) {
    const auto group = static_cast<std::size_t>(selection_.group);
    const auto depth = static_cast<std::size_t>(selection_.depth);
    kept.query.resize(group * depth);
    std::vector<Real> transposed(depth * static_cast<std::size_t>(rows_.lanes()));
    std::vector<Real> key(depth);
    std::vector<Real> dots(static_cast<std::size_t>(rows_.lanes()));
    std::vector<Real> d_query(group * depth);
    rows_.load_query(unit, kept.query.data(), transposed.data());
    const T* const dy = dy_.const_data_ptr<T>() + unit * selection_.count;
    const Real* const weights = rows_.weights(unit);
    Real* const d_weights = d_weights_.data() + unit * selection_.group;
    rows_.for_each(unit, [&](int64_t i, int64_t at) {
      rows_.load_key(at, key.data());
      rows_.multiply(transposed.data(), key.data(), dots.data());
      const Real outer = static_cast<Real>(dy[i]);
      kept.keys.push_back(at);
      for (std::size_t head = 0; head < group; ++head) {
        // The derivative where a product is 0 is 0, as in torch.
        const bool counts = dots[head] > 0;
        const Real factor = counts ? outer * weights[head] : Real{0};
        kept.factors.push_back(factor);
        if (!counts) continue;
        d_weights[head] += outer * dots[head];
        add_scaled(selection_.depth, factor, key.data(), d_query.data() + head * depth);
      }
    });
    std::transform(d_query.begin(), d_query.end(),
                   out_.d_query.mutable_data_ptr<T>() + unit * selection_.group * selection_.depth,
                   [](Real value) { return static_cast<T>(value); });
  }

  const Selection& selection_;
  SelectedRows<T> rows_;
  const Tensor& dy_;
  const Grad::Outputs& out_;
  std::vector<Real> d_weights_;
  std::vector<Real> d_key_;
};

// The sizes in the form of the other ops; this op has no pages.
ops::indexer::CallShape sizes_of(const Grad::CallShape& s) {
  const bool is_tnd = s.layout == Grad::Layout::TND;
  ops::indexer::CallShape sizes;
  sizes.layout_query = is_tnd ? LayoutQuery::TND : LayoutQuery::BSND;
  sizes.layout_key = is_tnd ? LayoutKey::TND : LayoutKey::BSND;
  sizes.B = s.B;
  sizes.S1 = s.S1;
  sizes.N1 = s.N1;
  sizes.D = s.D;
  sizes.T = s.T;
  sizes.N2 = s.N2;
  sizes.S2 = s.S2;
  sizes.T2 = s.T2;
  sizes.blocks = sizes.block_size = sizes.M = kNone;
  return sizes;
}

}  // namespace

Selection selection_of(const Call& call, const Tensor& indices) {
  const auto& s = call.sizes;
  const bool is_tnd = s.layout_query == LayoutQuery::TND;
  return {call.op,
          is_tnd ? s.T : s.B * s.S1,
          s.N2,
          s.N1 / s.N2,
          s.D,
          indices.size(indices.dim() - 1),
          to_contiguous(call.arguments.query),
          to_contiguous(call.arguments.key),
          to_contiguous(call.arguments.weights),
          to_contiguous(indices),
          ranges_of(call, is_tnd)};
}

void score_selected(const Call& call, const Tensor& indices, const Tensor& values) {
  const Selection selection = selection_of(call, indices);
  visit_numbers(call.op, "query", selection.query,
                [&](auto tag) { score<typename decltype(tag)::type>(selection, values); });
}

void differentiate_selected(const Grad::Arguments& a, const Grad::CallShape& s,
                            const Grad::Outputs& out) {
  const std::optional<Tensor> no_table;
  const Call call = {Grad::name,
                     {a.query, a.key, a.weights, a.actual_seq_lengths_query,
                      a.actual_seq_lengths_key, no_table, a.layout, a.layout, s.K, a.sparse_mode},
                     sizes_of(s)};
  const Selection selection = selection_of(call, a.sparse_indices);
  const Tensor dy = to_contiguous(a.dy);
  visit_numbers(call.op, "query", selection.query, [&](auto tag) {
    Gradients<typename decltype(tag)::type>(selection, dy, out).run();
  });
}

}  // namespace custom_pypto_lightning_indexer
