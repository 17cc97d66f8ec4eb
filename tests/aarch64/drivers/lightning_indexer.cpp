// The lightning indexer's kernels, called as its schedule calls them, by one thread.
#include <algorithm>
#include <vector>

#include "cpu/kernels.h"
#include "wire.h"

namespace custom_pypto_lightning_indexer {
namespace {

using driver::Bytes;
using driver::read_integer;

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Some rows of a sequence under one key head.
struct Rows {
  Query first;
  // Elements from one row to the next.
  int64_t query_stride;
  int64_t weights_stride;
  int64_t scales_stride;
  Bytes visible;

  int64_t count() const { return visible.size() / static_cast<int64_t>(sizeof(int64_t)); }
  const int64_t* seen() const { return visible.as<int64_t>(); }
  Query row(int64_t index) const {
    Query query = first;
    query.data += index * query_stride * bytes_of(query.element);
    query.weights += index * weights_stride * bytes_of(query.weight_element);
    query.scales += index * scales_stride * bytes_of(query.scale_element);
    return query;
  }
};

// Numbers of one dtype.
struct Numbers {
  Element element;
  Bytes storage;

  static Numbers read() {
    const auto element = static_cast<Element>(read_integer());
    return {element, driver::read_bytes()};
  }
  const char* at(int64_t index) const { return storage.as() + index * bytes_of(element); }
};

Keys read_keys(const Numbers& numbers, const Bytes& blocks) {
  Keys keys{};
  keys.element = numbers.element;
  keys.data = numbers.at(read_integer());
  keys.blocks = blocks.size() == 0 ? nullptr : blocks.as<int32_t>();
  keys.block_size = read_integer();
  keys.block_stride = read_integer();
  keys.token_stride = read_integer();
  keys.stride = read_integer();
  keys.depth = read_integer();
  return keys;
}

Rows read_rows(const Numbers& queries, const Numbers& weights, const Numbers& scales) {
  Query query{};
  query.element = queries.element;
  query.weight_element = weights.element;
  query.scale_element = scales.element;
  query.data = queries.at(read_integer());
  const int64_t query_stride = read_integer();
  query.head_stride = read_integer();
  query.stride = read_integer();
  query.weights = weights.at(read_integer());
  const int64_t weights_stride = read_integer();
  query.weight_stride = read_integer();
  query.scales = scales.at(read_integer());
  const int64_t scales_stride = read_integer();
  query.scale_stride = read_integer();
  query.heads = read_integer();
  return {query, query_stride, weights_stride, scales_stride, driver::read_bytes()};
}

// Scores in ranges of `split` tokens, then selects `limit` positions of each row.
void select(const Keys& keys, const Keys& scales, const Rows& rows, int64_t split, int64_t limit) {
  const Kernels k = keys.element == Element::int8 ? Kernels{int8_kernels(), kernels()} : kernels();
  const int64_t heads = rows.first.heads;
  const int64_t tokens = *std::max_element(rows.seen(), rows.seen() + rows.count());
  const int64_t stride = round_up(tokens, kTokenBlock);
  const int64_t row_bytes = k.packed_row_bytes(keys, heads);
  const Bytes packed(rows.count() * row_bytes);
  const Bytes ranks(rows.count() * stride * 4);
  const Bytes score_scratch(k.score_scratch_bytes(keys));
  const Bytes select_scratch(k.select_scratch_bytes(tokens));
  const Bytes out(rows.count() * limit * 4);
  for (int64_t r = 0; r < rows.count(); ++r) {
    k.pack(keys, rows.row(r), packed.as() + r * row_bytes);
  }
  for (int64_t first = 0; first < tokens; first += split) {
    const int64_t last = std::min(first + split, tokens);
    k.score({&keys, heads, packed.as(), rows.seen(), rows.count(), first, last, ranks.as<int32_t>(),
             stride, score_scratch.as(), &scales});
  }
  for (int64_t r = 0; r < rows.count(); ++r) {
    k.select(ranks.as<int32_t>() + r * stride, rows.seen()[r], limit, select_scratch.as(),
             out.as<int32_t>() + r * limit);
  }
  driver::write_bytes(out.as(), out.size());
}

// A call of either op: its tensors, then its sequences under each key head. The scales are empty if
// query and key are not int8.
void answer(int64_t) {
  const int64_t split = read_integer();
  const int64_t limit = read_integer();
  const Numbers query = Numbers::read();
  const Numbers key = Numbers::read();
  const Numbers weights = Numbers::read();
  const Numbers query_scales = Numbers::read();
  const Numbers key_scales = Numbers::read();
  for (int64_t left = read_integer(); left > 0; --left) {
    const Bytes blocks = driver::read_bytes();
    const Keys keys = read_keys(key, blocks);
    const Keys scales = read_keys(key_scales, blocks);
    const Rows rows = read_rows(query, weights, query_scales);
    select(keys, scales, rows, split, limit);
  }
}

}  // namespace
}  // namespace custom_pypto_lightning_indexer

int main() {
  using namespace custom_pypto_lightning_indexer;
  return driver::serve(answer);
}
