// Which keys each row may select from.
#include "selected_rows.h"

namespace custom_pypto_lightning_indexer {
namespace {

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
          dense(call.tensors.query),
          dense(call.tensors.key),
          dense(call.tensors.weights),
          dense(indices),
          ranges_of(call, is_tnd)};
}

}  // namespace custom_pypto_lightning_indexer
