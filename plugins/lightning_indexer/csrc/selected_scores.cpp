// Scores of selected keys and their gradients, in fp32, or fp64 for fp64. Heads are the lanes of
// the dot products.
//
// Gradients come in two steps, some rows at a time. First, row by row, those of query and weights,
// and the factors with which the queries are added to the gradients of the keys. Then, columns by
// columns, these sums: whoever has a column goes through the rows in order, so no two threads add
// to one number, and the sums are the same for any number of threads.
#include "selected_scores.h"

#include <custom_pypto/dtype.h>
#include <custom_pypto/paging.h>
#include <custom_pypto/parallel.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

namespace custom_pypto_lightning_indexer {
namespace {

using custom_pypto::check;
using custom_pypto::fail;
using custom_pypto::Integers;
using custom_pypto::Tensor;
using Indexer = ops::npu_lightning_indexer;
using Grad = ops::npu_lightning_indexer_grad;

// Numbers that a compiler can keep in a vector.
constexpr int64_t kLanes = 16;
// What the rows of one round may keep between the steps, unless one alone needs more.
constexpr int64_t kRoundBytes = 1 << 26;
// Columns of a unit of work of the second step. The same for any number of threads.
constexpr int64_t kUnitColumns = 32;

template <class T>
using RealOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

Tensor dense(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

// to += factor * from
template <class Real>
void add_scaled(int64_t count, Real factor, const Real* from, Real* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) to[i + lane] += factor * from[i + lane];
  }
  for (; i < count; ++i) to[i] += factor * from[i];
}

// All numbers of a contiguous tensor.
template <class Real>
std::vector<Real> read(const char* op, const Tensor& tensor) {
  std::vector<Real> values(static_cast<std::size_t>(tensor.numel()));
  custom_pypto::visit_dtype<custom_pypto::BFloat16, custom_pypto::Half, float, double>(
      op, "weights", tensor.scalar_type(), [&](auto tag) {
        const auto* from = tensor.const_data_ptr<typename decltype(tag)::type>();
        std::transform(from, from + values.size(), values.begin(),
                       [](auto value) { return static_cast<Real>(value); });
      });
  return values;
}

template <class Real>
void write(const char* op, const std::vector<Real>& values, const Tensor& tensor) {
  custom_pypto::visit_dtype<custom_pypto::BFloat16, custom_pypto::Half, float, double>(
      op, "weights", tensor.scalar_type(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        std::transform(values.begin(), values.end(), tensor.mutable_data_ptr<T>(),
                       [](Real value) { return static_cast<T>(value); });
      });
}

// The keys of a row's sequence, among all tokens of key.
struct KeyRange {
  int64_t first;
  int64_t count;
};

// What values and gradients have in common: query [rows, N1, D], key [tokens, N2, D].
struct Problem {
  const char* op;
  bool is_tnd;
  int64_t rows;  // query tokens, padding included
  int64_t key_heads;
  int64_t group;  // query heads of a key head
  int64_t depth;
  int64_t count;  // positions listed for a row
  Tensor query;
  Tensor key;
  Tensor weights;
  Tensor indices;
};

std::vector<KeyRange> ranges_of(const Problem& p, const char* query_name,
                                const std::optional<Tensor>& query_lengths, const char* key_name,
                                const std::optional<Tensor>& key_lengths) {
  std::vector<KeyRange> ranges;
  if (!p.is_tnd) {
    const int64_t keys = p.key.size(1);
    std::vector<int64_t> counts(static_cast<std::size_t>(p.query.size(0)), keys);
    if (key_lengths.has_value()) {
      custom_pypto::read_lengths(*key_lengths, keys, counts, [&](int64_t length, int64_t sequence) {
        fail(p.op, key_name, "must lie between 0 and ", keys, " (the keys of a sequence), got ",
             length, " for sequence ", sequence);
      });
    }
    for (int64_t b = 0; b < p.query.size(0); ++b) {
      ranges.insert(ranges.end(), static_cast<std::size_t>(p.query.size(1)),
                    {b * keys, counts[static_cast<std::size_t>(b)]});
    }
    return ranges;
  }
  const auto read = [&](const char* name, const Tensor& sums, int64_t total, const char* what) {
    std::vector<int64_t> counts;
    const int64_t end = custom_pypto::read_prefix_sums(
        sums, total, counts, [&](int64_t sum, int64_t sequence, int64_t before) {
          fail(p.op, name, "must be prefix sums, which never decrease, got ", sum, " after ",
               before, " at sequence ", sequence);
        });
    check(end == total, p.op, name, "must be prefix sums that end at ", total, ", ", what, ", got ",
          end);
    return counts;
  };
  const auto rows = read(query_name, *query_lengths, p.rows, "the number of query tokens");
  const auto keys = read(key_name, *key_lengths, p.key.size(0), "the number of keys");
  int64_t first = 0;
  for (std::size_t b = 0; b < rows.size(); ++b) {
    ranges.insert(ranges.end(), static_cast<std::size_t>(rows[b]), {first, keys[b]});
    first += keys[b];
  }
  return ranges;
}

// Rows of one dtype. A head's row of a token is `unit` = token * key_heads + key head.
template <class T>
class Rows {
 public:
  using Real = RealOf<T>;

  Rows(const Problem& p, std::vector<KeyRange> ranges)
      : p_(p),
        ranges_(std::move(ranges)),
        weights_(read<Real>(p.op, p.weights)),
        indices_(p.indices),
        lanes_(divide_up(p.group, kLanes) * kLanes) {}

  int64_t units() const { return p_.rows * p_.key_heads; }
  const Real* weights(int64_t unit) const { return weights_.data() + unit * p_.group; }

  // Calls f(i, key) for each position i of a row that is listed, with its key among all.
  template <class F>
  void for_each(int64_t unit, const F& f) const {
    const int64_t head = unit % p_.key_heads;
    const KeyRange& range = ranges_[static_cast<std::size_t>(unit / p_.key_heads)];
    for (int64_t i = 0; i < p_.count; ++i) {
      const int64_t position = indices_[unit * p_.count + i];
      if (position == -1) continue;
      check(position >= 0 && position < range.count, p_.op, "sparse_indices",
            "must hold -1 or positions below ", range.count, ", the keys of the sequence, got ",
            position, " for query token ", unit / p_.key_heads);
      f(i, (range.first + position) * p_.key_heads + head);
    }
  }

  // [group, depth] of a row's query, and the same transposed, in lanes.
  void load_query(int64_t unit, Real* query, Real* transposed) const {
    const T* from = p_.query.const_data_ptr<T>() + unit * p_.group * p_.depth;
    std::fill_n(transposed, p_.depth * lanes_, Real{0});
    for (int64_t head = 0; head < p_.group; ++head) {
      for (int64_t d = 0; d < p_.depth; ++d) {
        const Real value = static_cast<Real>(from[head * p_.depth + d]);
        query[head * p_.depth + d] = transposed[d * lanes_ + head] = value;
      }
    }
  }

  void load_key(int64_t key, Real* to) const {
    const T* from = p_.key.const_data_ptr<T>() + key * p_.depth;
    for (int64_t d = 0; d < p_.depth; ++d) to[d] = static_cast<Real>(from[d]);
  }

  // dots[head] = query[head] . key
  void multiply(const Real* transposed, const Real* key, Real* dots) const {
    std::fill_n(dots, lanes_, Real{0});
    for (int64_t d = 0; d < p_.depth; ++d) {
      add_scaled(lanes_, key[d], transposed + d * lanes_, dots);
    }
  }

  int64_t lanes() const { return lanes_; }

 private:
  const Problem& p_;
  std::vector<KeyRange> ranges_;
  std::vector<Real> weights_;
  Integers indices_;
  int64_t lanes_;
};

template <class T>
void score(const Problem& p, std::vector<KeyRange> ranges, const Tensor& values) {
  using Real = RealOf<T>;
  const Rows<T> rows(p, std::move(ranges));
  T* const out = values.mutable_data_ptr<T>();
  custom_pypto::parallel_for(0, rows.units(), 1, [&](int64_t begin, int64_t end) {
    std::vector<Real> query(static_cast<std::size_t>(p.group * p.depth));
    std::vector<Real> transposed(static_cast<std::size_t>(p.depth * rows.lanes()));
    std::vector<Real> key(static_cast<std::size_t>(p.depth));
    std::vector<Real> dots(static_cast<std::size_t>(rows.lanes()));
    for (int64_t unit = begin; unit < end; ++unit) {
      rows.load_query(unit, query.data(), transposed.data());
      T* const of_row = out + unit * p.count;
      std::fill_n(of_row, p.count, static_cast<T>(-std::numeric_limits<float>::infinity()));
      rows.for_each(unit, [&](int64_t i, int64_t at) {
        rows.load_key(at, key.data());
        rows.multiply(transposed.data(), key.data(), dots.data());
        Real sum = 0;
        for (int64_t head = 0; head < p.group; ++head) {
          const Real dot = dots[static_cast<std::size_t>(head)];
          sum += rows.weights(unit)[head] * (dot < 0 ? Real{0} : dot);
        }
        of_row[i] = static_cast<T>(sum);
      });
    }
  });
}

template <class T>
class Gradients {
 public:
  using Real = RealOf<T>;

  Gradients(const Problem& p, std::vector<KeyRange> ranges, const Tensor& dy,
            const Grad::Outputs& out)
      : p_(p),
        rows_(p, std::move(ranges)),
        dy_(dy),
        out_(out),
        d_weights_(static_cast<std::size_t>(p.weights.numel())),
        d_key_(static_cast<std::size_t>(p.key.numel())) {}

  void run() {
    const int64_t bytes = p_.group * (p_.count + p_.depth) * static_cast<int64_t>(sizeof(Real));
    const int64_t most =
        std::max(kRoundBytes / std::max<int64_t>(bytes, 1), custom_pypto::num_threads());
    for (int64_t begin = 0; begin < rows_.units(); begin += most) {
      run_round(begin, std::min(most, rows_.units() - begin));
    }
    write(p_.op, d_weights_, out_.d_weights);
    write(p_.op, d_key_, out_.d_key);
  }

 private:
  // What the second step needs of a row.
  struct Kept {
    std::vector<int64_t> keys;
    std::vector<Real> factors;  // [keys, group]
    std::vector<Real> query;    // [group, depth]
  };

  void run_round(int64_t first, int64_t count) {
    std::vector<Kept> kept(static_cast<std::size_t>(count));
    custom_pypto::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        differentiate(first + i, kept[static_cast<std::size_t>(i)]);
      }
    });
    custom_pypto::parallel_for(
        0, divide_up(p_.depth, kUnitColumns), 1, [&](int64_t begin, int64_t end) {
          const int64_t column = begin * kUnitColumns;
          const int64_t columns = std::min(p_.depth, end * kUnitColumns) - column;
          for (const Kept& each : kept) {
            for (std::size_t i = 0; i < each.keys.size(); ++i) {
              Real* const to = d_key_.data() + each.keys[i] * p_.depth + column;
              for (int64_t head = 0; head < p_.group; ++head) {
                const Real factor = each.factors[i * static_cast<std::size_t>(p_.group) +
                                                 static_cast<std::size_t>(head)];
                if (factor == 0) continue;
                add_scaled(columns, factor, each.query.data() + head * p_.depth + column, to);
              }
            }
          }
        });
  }

  // The first step for one row.
  void differentiate(int64_t unit, Kept& kept) {
    const auto group = static_cast<std::size_t>(p_.group);
    const auto depth = static_cast<std::size_t>(p_.depth);
    kept.query.resize(group * depth);
    std::vector<Real> transposed(depth * static_cast<std::size_t>(rows_.lanes()));
    std::vector<Real> key(depth);
    std::vector<Real> dots(static_cast<std::size_t>(rows_.lanes()));
    std::vector<Real> d_query(group * depth);
    rows_.load_query(unit, kept.query.data(), transposed.data());
    const T* const dy = dy_.const_data_ptr<T>() + unit * p_.count;
    const Real* const weights = rows_.weights(unit);
    Real* const d_weights = d_weights_.data() + unit * p_.group;
    rows_.for_each(unit, [&](int64_t i, int64_t at) {
      rows_.load_key(at, key.data());
      rows_.multiply(transposed.data(), key.data(), dots.data());
      const Real outer = static_cast<Real>(dy[i]);
      kept.keys.push_back(at);
      for (std::size_t head = 0; head < group; ++head) {
        // Where a product is 0 its derivative is taken for 0, as torch does.
        const bool counts = dots[head] > 0;
        const Real factor = counts ? outer * weights[head] : Real{0};
        kept.factors.push_back(factor);
        if (!counts) continue;
        d_weights[head] += outer * dots[head];
        add_scaled(p_.depth, factor, key.data(), d_query.data() + head * depth);
      }
    });
    std::transform(d_query.begin(), d_query.end(),
                   out_.d_query.mutable_data_ptr<T>() + unit * p_.group * p_.depth,
                   [](Real value) { return static_cast<T>(value); });
  }

  const Problem& p_;
  Rows<T> rows_;
  const Tensor& dy_;
  const Grad::Outputs& out_;
  std::vector<Real> d_weights_;
  std::vector<Real> d_key_;
};

template <class F>
void visit_query(const char* op, const Tensor& query, const F& f) {
  custom_pypto::visit_dtype<custom_pypto::BFloat16, custom_pypto::Half, float, double>(
      op, "query", query.scalar_type(), f);
}

}  // namespace

void score_selected(const Indexer::Arguments& a, const Indexer::Sizes& s,
                    const Indexer::Outputs& out) {
  const bool is_tnd = s.layout_query == Indexer::LayoutQuery::TND;
  const Problem p = {Indexer::name,
                     is_tnd,
                     is_tnd ? s.T : s.B * s.S1,
                     s.N2,
                     s.N1 / s.N2,
                     s.D,
                     a.sparse_count,
                     dense(a.query),
                     dense(a.key),
                     dense(a.weights),
                     out.sparse_indices};
  auto ranges = ranges_of(p, "actual_seq_lengths_query", a.actual_seq_lengths_query,
                          "actual_seq_lengths_key", a.actual_seq_lengths_key);
  visit_query(p.op, p.query, [&](auto tag) {
    score<typename decltype(tag)::type>(p, std::move(ranges), out.sparse_values);
  });
}

void grad_of_selected(const Grad::Arguments& a, const Grad::Sizes& s, const Grad::Outputs& out) {
  const bool is_tnd = s.layout == Grad::Layout::TND;
  const Problem p = {Grad::name,
                     is_tnd,
                     is_tnd ? s.T : s.B * s.S1,
                     s.N2,
                     s.N1 / s.N2,
                     s.D,
                     s.K,
                     dense(a.query),
                     dense(a.key),
                     dense(a.weights),
                     dense(a.sparse_indices)};
  auto ranges = ranges_of(p, "actual_seq_lengths_query", a.actual_seq_lengths_query,
                          "actual_seq_lengths_key", a.actual_seq_lengths_key);
  const Tensor dy = dense(a.dy);
  visit_query(p.op, p.query, [&](auto tag) {
    Gradients<typename decltype(tag)::type>(p, std::move(ranges), dy, out).run();
  });
}

}  // namespace custom_pypto_lightning_indexer
