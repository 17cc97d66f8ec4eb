// Reads and checks lengths and block table; divides the arguments into sequences.
#include "problem.h"

#include <algorithm>
#include <limits>

namespace custom_pypto_lightning_indexer {
namespace {

using custom_pypto::check;
using Arguments = Op::Arguments;
using Sizes = Op::Sizes;

constexpr const char* kQueryLengths = "actual_seq_lengths_query";
constexpr const char* kKeyLengths = "actual_seq_lengths_key";
constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max() - kTokenBlock;

Element element_of(ScalarType dtype) {
  if (dtype == ScalarType::BFloat16) return Element::bf16;
  if (dtype == ScalarType::Half) return Element::f16;
  return Element::f32;
}

// A tensor of lengths or block numbers: int32 or int64, any strides.
class Integers {
 public:
  explicit Integers(const Tensor& tensor)
      : data_(tensor.const_data_ptr()), wide_(tensor.scalar_type() == ScalarType::Long) {}

  int64_t operator[](int64_t index) const {
    return wide_ ? static_cast<const int64_t*>(data_)[index]
                 : static_cast<const int32_t*>(data_)[index];
  }

 private:
  const void* data_;
  bool wide_;
};

void read_integers(const Tensor& tensor, int64_t count, std::vector<int64_t>& out) {
  const Integers values(tensor);
  const int64_t stride = tensor.stride(0);
  out.clear();
  for (int64_t i = 0; i < count; ++i) out.push_back(values[i * stride]);
}

// Fills `lengths` with one length per sequence from a tensor of lengths.
void read_lengths(const char* name, const Tensor& tensor, int64_t count, int64_t longest,
                  const char* limit, std::vector<int64_t>& lengths) {
  read_integers(tensor, count, lengths);
  for (size_t b = 0; b < lengths.size(); ++b) {
    check(lengths[b] >= 0 && lengths[b] <= longest, Op::name, name, "must lie between 0 and ",
          longest, " (", limit, "), got ", lengths[b], " for sequence ", b);
  }
}

// Fills `lengths` with one length per sequence from a tensor of prefix sums that end at `total`.
void read_prefix_sums(const char* name, const Tensor& tensor, int64_t count, int64_t total,
                      const char* what, std::vector<int64_t>& lengths) {
  read_integers(tensor, count, lengths);
  int64_t previous = 0;
  for (size_t b = 0; b < lengths.size(); ++b) {
    const int64_t sum = lengths[b];
    check(sum >= previous, Op::name, name, "must be prefix sums, which never decrease, got ", sum,
          " after ", previous, " at sequence ", b);
    lengths[b] = sum - previous;
    previous = sum;
  }
  check(previous == total, Op::name, name, "must be prefix sums that end at ", total, ", ", what,
        ", got ", previous);
}

void read_query_lengths(const Arguments& a, const Sizes& s, std::vector<int64_t>& lengths) {
  const std::optional<Tensor>& given = a.actual_seq_lengths_query;
  if (s.layout_query == Op::LayoutQuery::TND) {
    return read_prefix_sums(kQueryLengths, *given, s.B, s.T, "the number of query tokens", lengths);
  }
  if (!given.has_value()) return lengths.assign(static_cast<size_t>(s.B), s.S1);
  read_integers(*given, s.B, lengths);
  for (size_t b = 0; b < lengths.size(); ++b) {
    check(lengths[b] >= 0, Op::name, kQueryLengths, "must be at least 0, got ", lengths[b],
          " for sequence ", b);
    // Prefix sums, which published models pass, are right where sequences are whole.
    lengths[b] = std::min(lengths[b], s.S1);
  }
}

void read_key_lengths(const Arguments& a, const Sizes& s, std::vector<int64_t>& lengths) {
  const std::optional<Tensor>& given = a.actual_seq_lengths_key;
  switch (s.layout_key) {
    case Op::LayoutKey::PA_BSND:
      return read_lengths(kKeyLengths, *given, s.B, s.M * s.block_size,
                          "what a row of block_table can hold", lengths);
    case Op::LayoutKey::TND:
      return read_prefix_sums(kKeyLengths, *given, s.B, s.T2, "the number of keys", lengths);
    case Op::LayoutKey::BSND:
      if (!given.has_value()) return lengths.assign(static_cast<size_t>(s.B), s.S2);
      return read_lengths(kKeyLengths, *given, s.B, s.S2, "the keys of a sequence", lengths);
  }
}

// Appends the blocks that the first `tokens` keys of sequence `b` lie in.
void read_blocks(const Arguments& a, const Sizes& s, int64_t b, int64_t tokens,
                 std::vector<int32_t>& blocks) {
  const Integers table(*a.block_table);
  const int64_t row = b * a.block_table->stride(0);
  const int64_t step = a.block_table->stride(1);
  const int64_t needed = (tokens + s.block_size - 1) / s.block_size;
  for (int64_t i = 0; i < needed; ++i) {
    const int64_t block = table[row + i * step];
    check(block >= 0 && block < s.blocks, Op::name, "block_table",
          "must hold blocks between 0 and ", s.blocks - 1, " (the blocks of key) where sequence ",
          b, " of length ", tokens, " needs them, got ", block, " at [", b, ", ", i, "]");
    blocks.push_back(static_cast<int32_t>(block));
  }
}

const char* offset(const Tensor& tensor, Element element, int64_t elements) {
  return static_cast<const char*>(tensor.const_data_ptr()) + elements * element_size(element);
}

}  // namespace

void read_problem(const Arguments& a, const Sizes& s, Problem& problem) {
  const bool tnd = s.layout_query == Op::LayoutQuery::TND;
  const bool paged = s.layout_key == Op::LayoutKey::PA_BSND;
  read_query_lengths(a, s, problem.query_lengths);
  read_key_lengths(a, s, problem.key_lengths);

  // Dimensions: rows of query and weights, tokens of key.
  const int64_t row = tnd ? 0 : 1;
  const int64_t token = s.layout_key == Op::LayoutKey::TND ? 0 : 1;
  const Element element = element_of(a.query.scalar_type());
  const Element weight_element = element_of(a.weights.scalar_type());
  problem.rows = tnd ? s.T : s.B * s.S1;
  problem.key_heads = s.N2;
  problem.group = s.N1 / s.N2;
  problem.sparse_count = a.sparse_count;
  problem.causal = a.sparse_mode == 3;
  problem.query_row_stride = a.query.stride(row);
  problem.weights_row_stride = a.weights.stride(row);
  problem.key_head_stride = a.key.stride(token + 1);
  problem.query = {nullptr,
                   a.query.stride(row + 1),
                   a.query.stride(row + 2),
                   nullptr,
                   a.weights.stride(row + 1),
                   problem.group,
                   element,
                   weight_element};
  Keys keys{};
  keys.stride = a.key.stride(token + 2);
  keys.token_stride = a.key.stride(token);
  keys.depth = s.D;
  keys.element = element;
  if (paged) {
    keys.data = offset(a.key, element, 0);
    keys.block_size = s.block_size;
    keys.block_stride = a.key.stride(0);
  }

  problem.blocks.clear();
  problem.sequences.clear();
  int64_t query_token = 0;
  int64_t key_token = 0;
  for (int64_t b = 0; b < s.B; ++b) {
    const auto index = static_cast<size_t>(b);
    Sequence sequence{};
    sequence.rows = problem.query_lengths[index];
    sequence.tokens = problem.key_lengths[index];
    check(sequence.tokens <= kMostTokens, Op::name, kKeyLengths, "must be at most ", kMostTokens,
          " (positions are int32), got ", sequence.tokens, " for sequence ", b);
    sequence.first_row = tnd ? query_token : b * s.S1;
    const int64_t query_step = tnd ? query_token : b;
    sequence.query = offset(a.query, element, query_step * a.query.stride(0));
    sequence.weights = offset(a.weights, weight_element, query_step * a.weights.stride(0));
    sequence.keys = keys;
    if (!paged) {
      const int64_t step = s.layout_key == Op::LayoutKey::TND ? key_token : b;
      sequence.keys.data = offset(a.key, element, step * a.key.stride(0));
    } else if (sequence.rows > 0) {
      read_blocks(a, s, b, sequence.tokens, problem.blocks);
    }
    problem.sequences.push_back(sequence);
    query_token += sequence.rows;
    key_token += sequence.tokens;
  }
  if (!paged) return;
  // Only now: the vector has stopped moving.
  const int32_t* blocks = problem.blocks.data();
  for (Sequence& sequence : problem.sequences) {
    sequence.keys.blocks = blocks;
    if (sequence.rows > 0) blocks += (sequence.tokens + s.block_size - 1) / s.block_size;
  }
}

}  // namespace custom_pypto_lightning_indexer
