// Reads and checks lengths and block table; divides the arguments into sequences.
#include "problem.h"

#include <custom_pypto/dtype.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/divide.h>
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

// What the versions of the ops have in common; lengths and offsets have been read.
struct Input {
  const char* op;
  const char* key_lengths_name;
  const Tensor& query;
  const Tensor& key;
  const Tensor& weights;
  const Tensor* query_scales;
  const Tensor* key_scales;
  const std::optional<Tensor>& block_table;
  bool is_tnd;
  bool are_keys_tnd;
  bool is_paged;
};

// Appends the blocks that the first `tokens` keys of sequence `b` lie in.
void read_blocks(const Input& input, const BlockTable& table, int64_t b, int64_t tokens,
                 std::vector<int32_t>& blocks) {
  const int64_t most = input.key.size(0);
  const int64_t needed = custom_pypto::divide_up(tokens, input.key.size(1));
  for (int64_t i = 0; i < needed; ++i) {
    const int64_t block = table.block(b, i, most, [&](int64_t found) {
      fail(input.op, "block_table", "must hold blocks between 0 and ", most - 1,
           " (the blocks of the keys) where sequence ", b, " of length ", tokens,
           " needs them, got ", found, " at [", b, ", ", i, "]");
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

// Lets the sequences of `tokens` follow each other.
void put_in_a_row(Tokens& tokens) {
  tokens.first.clear();
  int64_t first = 0;
  for (const int64_t length : tokens.lengths) {
    tokens.first.push_back(first);
    first += length;
  }
}

// Gives each sequence of `tokens` the place of `size` tokens.
void put_in_batches(int64_t size, Tokens& tokens) {
  tokens.first.clear();
  for (size_t b = 0; b < tokens.lengths.size(); ++b) {
    tokens.first.push_back(static_cast<int64_t>(b) * size);
  }
}

void fill(const Input& input, Problem& problem) {
  const bool tnd = input.is_tnd;
  const bool paged = input.is_paged;
  // Dimensions: rows of query and weights, tokens of key.
  const int64_t row = tnd ? 0 : 1;
  const int64_t token = input.are_keys_tnd ? 0 : 1;
  const Element element = element_of(input.query.scalar_type());
  const Element weight_element = element_of(input.weights.scalar_type());
  problem.rows = tnd ? input.query.size(0) : input.query.size(0) * input.query.size(1);
  problem.key_heads = input.key.size(token + 1);
  problem.group = input.query.size(row + 1) / problem.key_heads;
  problem.query_row_stride = input.query.stride(row);
  problem.weights_row_stride = input.weights.stride(row);
  problem.key_head_stride = input.key.stride(token + 1);
  problem.query = {nullptr,
                   input.query.stride(row + 1),
                   input.query.stride(row + 2),
                   nullptr,
                   input.weights.stride(row + 1),
                   problem.group,
                   element,
                   weight_element,
                   nullptr,
                   0,
                   Element::fp32};
  const Keys keys = keys_of(input.key, token, paged);
  Keys key_scales{};
  problem.query_scale_row_stride = problem.key_scale_head_stride = 0;
  if (input.query_scales != nullptr) {
    problem.query_scale_row_stride = input.query_scales->stride(row);
    problem.query.scale_stride = input.query_scales->stride(row + 1);
    problem.query.scale_element = element_of(input.query_scales->scalar_type());
    problem.key_scale_head_stride = input.key_scales->stride(token + 1);
    key_scales = keys_of(*input.key_scales, token, paged);
  }
  std::optional<BlockTable> block_table;
  if (paged) block_table.emplace(*input.block_table);

  problem.blocks.clear();
  problem.sequences.clear();
  const auto batch = static_cast<int64_t>(problem.queries.lengths.size());
  for (int64_t b = 0; b < batch; ++b) {
    const auto index = static_cast<size_t>(b);
    Sequence sequence{};
    sequence.rows = problem.queries.lengths[index];
    sequence.tokens = problem.keys.lengths[index];
    check(sequence.tokens <= kMostTokens, input.op, input.key_lengths_name, "must be at most ",
          kMostTokens, " (positions are int32), got ", sequence.tokens, " for sequence ", b);
    sequence.first_row = problem.queries.first[index];
    const int64_t query_step = tnd ? sequence.first_row : b;
    sequence.query = offset(input.query, element, query_step * input.query.stride(0));
    sequence.weights = offset(input.weights, weight_element, query_step * input.weights.stride(0));
    sequence.keys = keys;
    sequence.key_scales = key_scales;
    const int64_t key_step = paged ? 0 : token == 0 ? problem.keys.first[index] : b;
    sequence.keys.data = offset(input.key, element, key_step * input.key.stride(0));
    if (input.query_scales != nullptr) {
      sequence.query_scales = offset(*input.query_scales, problem.query.scale_element,
                                     query_step * input.query_scales->stride(0));
      sequence.key_scales.data =
          offset(*input.key_scales, key_scales.element, key_step * input.key_scales->stride(0));
    }
    if (paged && sequence.rows > 0) {
      read_blocks(input, *block_table, b, sequence.tokens, problem.blocks);
    }
    problem.sequences.push_back(sequence);
  }
  if (!paged) return;
  // Only now, because the vector no longer moves.
  const int32_t* blocks = problem.blocks.data();
  for (Sequence& sequence : problem.sequences) {
    sequence.keys.blocks = sequence.key_scales.blocks = blocks;
    if (sequence.rows > 0) blocks += custom_pypto::divide_up(sequence.tokens, keys.block_size);
  }
}

// The tokens of one side of a call of the second version.
struct Side {
  const char* sums_name;
  const std::optional<Tensor>& sums;
  const char* used_name;
  const std::optional<Tensor>& used;
  int64_t total;  // tokens, with prefix sums
  int64_t room;   // tokens of a sequence, without
};

void read_tokens(const CallV2& call, const Side& side, Tokens& tokens) {
  if (side.sums.has_value()) {
    custom_pypto::read_prefix_sums(
        *side.sums, side.total, tokens.lengths,
        [&](int64_t sum, int64_t index, int64_t before) {
          fail(call.op, side.sums_name,
               "must be prefix sums, which begin with 0, never decrease and", " are at most ",
               side.total, " (the number of tokens), got ", sum, " after ", before, " at index ",
               index);
        },
        true);
    put_in_a_row(tokens);
  } else {
    tokens.lengths.assign(static_cast<size_t>(call.sizes.B), side.room);
  }
  if (!side.used.has_value()) return;
  const Integers used(*side.used);
  for (int64_t b = 0; b < call.sizes.B; ++b) {
    int64_t& length = tokens.lengths[static_cast<size_t>(b)];
    const int64_t found = used[b * side.used->stride(0)];
    check(found >= 0 && found <= length, call.op, side.used_name, "must lie between 0 and ", length,
          " (the tokens of the sequence), got ", found, " for sequence ", b);
    length = found;
  }
}

// Sets the residual of each sequence.
void read_residuals(const CallV2& call, Problem& problem) {
  if (!call.arguments.cmp_residual_k.has_value()) return;
  const Integers residuals(*call.arguments.cmp_residual_k);
  const int64_t stride = call.arguments.cmp_residual_k->stride(0);
  for (int64_t b = 0; b < call.sizes.B; ++b) {
    const int64_t residual = residuals[b * stride];
    check(residual >= 0 && residual < problem.ratio, call.op, "cmp_residual_k",
          "must lie between 0 and ", problem.ratio - 1, " (cmp_ratio - 1), got ", residual,
          " for sequence ", b);
    problem.sequences[static_cast<size_t>(b)].residual = residual;
  }
}

// Reads what is added to the positions of the rows that see a key.
void read_offsets(const CallV2& call, Problem& problem) {
  problem.offsets.clear();
  if (!call.arguments.output_idx_offset.has_value()) return;
  const Tensor offsets = to_contiguous(*call.arguments.output_idx_offset);
  const Integers values(offsets);
  problem.offsets.resize(static_cast<size_t>(problem.rows * problem.key_heads));
  for (const Sequence& sequence : problem.sequences) {
    for (int64_t row = 0; row < sequence.rows; ++row) {
      const int64_t visible = problem.visible(sequence, row);
      for (int64_t head = 0; visible > 0 && head < problem.key_heads; ++head) {
        const int64_t at = (sequence.first_row + row) * problem.key_heads + head;
        const int64_t most = std::numeric_limits<int32_t>::max() - (visible - 1);
        check(values[at] >= 0 && values[at] <= most, call.op, "output_idx_offset",
              "must lie between 0 and ", most, ", so that int32 holds every position, got ",
              values[at], " for query token ", sequence.first_row + row);
        problem.offsets[static_cast<size_t>(at)] = static_cast<int32_t>(values[at]);
      }
    }
  }
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
    return read_lengths(call.op, kKeyLengths, *given, tokens_of(s.M, s.block_size),
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
  read_query_lengths(call, problem.queries.lengths);
  read_key_lengths(call, problem.keys.lengths);
  tnd ? put_in_a_row(problem.queries) : put_in_batches(s.S1, problem.queries);
  if (s.layout_key == LayoutKey::TND) put_in_a_row(problem.keys);
  problem.sparse_count = a.sparse_count;
  problem.causal = a.sparse_mode == 3;
  problem.ratio = 1;
  problem.offsets.clear();
  fill({call.op, kKeyLengths, a.query, a.key, a.weights, call.query_scales, call.key_scales,
        a.block_table, tnd, s.layout_key == LayoutKey::TND, s.layout_key == LayoutKey::PA_BSND},
       problem);
}

void read_problem(const CallV2& call, Problem& problem) {
  const auto& a = call.arguments;
  const auto& s = call.sizes;
  const bool paged = s.layout_k == ops::LayoutK::PA_BBND;
  read_tokens(call, {"cu_seqlens_q", a.cu_seqlens_q, "seqused_q", a.seqused_q, s.T, s.S1},
              problem.queries);
  if (s.layout_q == ops::LayoutQ::BSND) put_in_batches(s.S1, problem.queries);
  // Of keys that are TND, size(1) is their heads, and is not read.
  const int64_t room = tokens_of(paged ? s.M : 1, call.key.size(1));
  read_tokens(call,
              {"cu_seqlens_k", a.cu_seqlens_k, "seqused_k", a.seqused_k, call.key.size(0), room},
              problem.keys);
  problem.sparse_count = a.topk;
  problem.causal = a.mask_mode == 3;
  problem.ratio = a.cmp_ratio;
  fill({call.op, paged ? "seqused_k" : "k", call.query, call.key, call.weights, call.query_scales,
        call.key_scales, a.block_table, s.layout_q == ops::LayoutQ::TND,
        s.layout_k == ops::LayoutK::TND, paged},
       problem);
  read_residuals(call, problem);
  read_offsets(call, problem);
}

}  // namespace custom_pypto_lightning_indexer
