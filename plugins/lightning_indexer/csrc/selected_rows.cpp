// Which keys each row may select from.
#include "selected_rows.h"

#include <custom_pypto/tensor_ops.h>

namespace custom_pypto_lightning_indexer {
namespace {

using custom_pypto::to_contiguous;

std::vector<KeyRange> ranges_of(const Call& call, bool is_tnd) {
  const auto& s = call.sizes;
  std::vector<int64_t> keys;
  read_key_lengths(call, keys);
  // Of BSND queries the rows beyond a sequence's length have none listed.
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

}  // namespace

Selection selection_of(const Call& call, const Tensor& indices) {
  const auto& s = call.sizes;
  const bool is_tnd = call.layout_query == "TND";
  return {call.op,
          is_tnd ? s.T : s.B * s.S1,
          s.N2,
          s.N1 / s.N2,
          s.D,
          indices.size(indices.dim() - 1),
          to_contiguous(call.tensors.query),
          to_contiguous(call.tensors.key),
          to_contiguous(call.tensors.weights),
          to_contiguous(indices),
          ranges_of(call, is_tnd)};
}

}  // namespace custom_pypto_lightning_indexer
