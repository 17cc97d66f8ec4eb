// Reads and checks lengths and block table; divides the arguments into sequences.
#include "problem.h"

#include <custom_pypto/dtype.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/paging.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace custom_pypto_lightning_indexer {
namespace {

constexpr const char* kQueryLengths = "actual_seq_lengths_query";
constexpr const char* kKeyLengths = "actual_seq_lengths_key";
constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max() - kTokenBlock;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// Fills `lengths` from a tensor of lengths; `limit` says what `longest` is.
void read_lengths(const char* op, const char* name, const Tensor& tensor, int64_t longest,
                  const char* limit, std::vector<int64_t>& lengths) {
  custom_pypto::read_lengths(tensor, longest, lengths, [&](int64_t length, int64_t sequence) {
    fail(op, name, "must lie between 0 and ", longest, " (", limit, "), got ", length,
         " for sequence ", sequence);
  });
}

// Fills `lengths` from a tensor of prefix sums of at most `most`; `limit` says what that is.
void read_prefix_sums(const char* op, const char* name, const Tensor& tensor, int64_t most,
                      const char* limit, std::vector<int64_t>& lengths) {
  custom_pypto::read_prefix_sums(
      tensor, most, lengths, [&](int64_t sum, int64_t sequence, int64_t before) {
        fail(op, name, "must be prefix sums, which never decrease and are at most ", most, " (",
             limit, "), got ", sum, " after ", before, " at sequence ", sequence);
      });
}

// Appends the blocks that the first `tokens` keys of sequence `b` lie in.
void read_blocks(const Call& call, const BlockTable& table, int64_t b, int64_t tokens,
                 std::vector<int32_t>& blocks) {
  const auto& s = call.sizes;
  const int64_t needed = blocks_of(tokens, s.block_size);
  for (int64_t i = 0; i < needed; ++i) {
    const int64_t block = table.block(b, i, s.blocks, [&](int64_t found) {
      fail(call.op, "block_table", "must hold blocks between 0 and ", s.blocks - 1,
           " (the blocks of key) where sequence ", b, " of length ", tokens, " needs them, got ",
           found, " at [", b, ", ", i, "]");
    });
    blocks.push_back(static_cast<int32_t>(block));
  }
}

const char* offset(const Tensor& tensor, Element element, int64_t elements) {
  return static_cast<const char*>(tensor.const_data_ptr()) + elements * bytes_of(element);
}

// Strides and sizes of a tensor of keys, or of scales, which are keys of depth 1; no data.
Keys keys_of(const Tensor& tensor, int64_t token, bool paged) {
  const bool has_depth = tensor.dim() == token + 3;
  Keys keys{};
  keys.token_stride = tensor.stride(token);
  keys.stride = has_depth ? tensor.stride(token + 2) : 1;
  keys.depth = has_depth ? tensor.size(token + 2) : 1;
  keys.element = element_of(tensor.scalar_type());
  if (paged) {
    keys.block_size = tensor.size(1);
    keys.block_stride = tensor.stride(0);
  }
  return keys;
}

}  // namespace

void read_query_lengths(const Call& call, std::vector<int64_t>& lengths) {
  const std::optional<Tensor>& given = call.arguments.actual_seq_lengths_query;
  const auto& s = call.sizes;
  if (s.layout_query == LayoutQuery::TND) {
    return read_prefix_sums(call.op, kQueryLengths, *given, s.T, "the number of query tokens",
                            lengths);
  }
  if (!given.has_value()) return lengths.assign(static_cast<size_t>(s.B), s.S1);
  custom_pypto::read_lengths(*given, kUnlimited, lengths, [&](int64_t length, int64_t sequence) {
    fail(call.op, kQueryLengths, "must be at least 0, got ", length, " for sequence ", sequence);
  });
  // Prefix sums, which published models pass, are right where sequences are whole.
  for (int64_t& length : lengths) length = std::min(length, s.S1);
}

void read_key_lengths(const Call& call, std::vector<int64_t>& lengths) {
  const std::optional<Tensor>& given = call.arguments.actual_seq_lengths_key;
  const auto& s = call.sizes;
  if (s.layout_key == LayoutKey::PA_BSND) {
    return read_lengths(call.op, kKeyLengths, *given, s.M * s.block_size,
                        "what a row of block_table can hold", lengths);
  }
  if (s.layout_key == LayoutKey::TND) {
    return read_prefix_sums(call.op, kKeyLengths, *given, s.T2, "the number of keys", lengths);
  }
  if (!given.has_value()) return lengths.assign(static_cast<size_t>(s.B), s.S2);
  read_lengths(call.op, kKeyLengths, *given, s.S2, "the keys of a sequence", lengths);
}

void read_problem(const Call& call, Problem& problem) {
  const auto& a = call.arguments;
  const auto& s = call.sizes;
  const bool tnd = s.layout_query == LayoutQuery::TND;
  const bool paged = s.layout_key == LayoutKey::PA_BSND;
  read_query_lengths(call, problem.query_lengths);
  read_key_lengths(call, problem.key_lengths);

  // Dimensions: rows of query and weights, tokens of key.
  const int64_t row = tnd ? 0 : 1;
  const int64_t token = s.layout_key == LayoutKey::TND ? 0 : 1;
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
                   weight_element,
                   nullptr,
                   0,
                   Element::fp32};
  const Keys keys = keys_of(a.key, token, paged);
  Keys key_scales{};
  problem.query_scale_row_stride = problem.key_scale_head_stride = 0;
  if (call.query_scales != nullptr) {
    problem.query_scale_row_stride = call.query_scales->stride(row);
    problem.query.scale_stride = call.query_scales->stride(row + 1);
    problem.query.scale_element = element_of(call.query_scales->scalar_type());
    problem.key_scale_head_stride = call.key_scales->stride(token + 1);
    key_scales = keys_of(*call.key_scales, token, paged);
  }
  std::optional<BlockTable> block_table;
  if (paged) block_table.emplace(*a.block_table);

  problem.blocks.clear();
  problem.sequences.clear();
  int64_t query_token = 0;
  int64_t key_token = 0;
  for (int64_t b = 0; b < s.B; ++b) {
    const auto index = static_cast<size_t>(b);
    Sequence sequence{};
    sequence.rows = problem.query_lengths[index];
    sequence.tokens = problem.key_lengths[index];
    check(sequence.tokens <= kMostTokens, call.op, kKeyLengths, "must be at most ", kMostTokens,
          " (positions are int32), got ", sequence.tokens, " for sequence ", b);
    sequence.first_row = tnd ? query_token : b * s.S1;
    const int64_t query_step = tnd ? query_token : b;
    sequence.query = offset(a.query, element, query_step * a.query.stride(0));
    sequence.weights = offset(a.weights, weight_element, query_step * a.weights.stride(0));
    sequence.keys = keys;
    sequence.key_scales = key_scales;
    const int64_t key_step = paged ? 0 : token == 0 ? key_token : b;
    sequence.keys.data = offset(a.key, element, key_step * a.key.stride(0));
    if (call.query_scales != nullptr) {
      sequence.query_scales = offset(*call.query_scales, problem.query.scale_element,
                                     query_step * call.query_scales->stride(0));
      sequence.key_scales.data =
          offset(*call.key_scales, key_scales.element, key_step * call.key_scales->stride(0));
    }
    if (paged && sequence.rows > 0) {
      read_blocks(call, *block_table, b, sequence.tokens, problem.blocks);
    }
    problem.sequences.push_back(sequence);
    query_token += sequence.rows;
    key_token += sequence.tokens;
  }
  if (!paged) return;
  // Only now, because the vector no longer moves.
  const int32_t* blocks = problem.blocks.data();
  for (Sequence& sequence : problem.sequences) {
    sequence.keys.blocks = sequence.key_scales.blocks = blocks;
    if (sequence.rows > 0) blocks += blocks_of(sequence.tokens, s.block_size);
  }
}

}  // namespace custom_pypto_lightning_indexer
