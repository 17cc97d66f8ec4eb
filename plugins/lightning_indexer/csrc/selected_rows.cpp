// The keys that each row may select from, and the scores of those that it selected.
#include "selected_rows.h"

#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace custom_pypto_lightning_indexer {
namespace {

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

}  // namespace custom_pypto_lightning_indexer
