#include "problem.h"

#include <algorithm>
#include <limits>

namespace custom_pypto_lightning_indexer {
namespace {

using custom_pypto::Arg;
using custom_pypto::check;
using custom_pypto::fail;
using custom_pypto::ScalarArg;

constexpr const char* kQueryLengths = "actual_seq_lengths_query";
constexpr const char* kKeyLengths = "actual_seq_lengths_key";
constexpr const char* kBlockTable = "block_table";
constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max() - kTokenBlock;

Element element_of(ScalarType dtype) {
  if (dtype == ScalarType::BFloat16) return Element::bf16;
  if (dtype == ScalarType::Half) return Element::f16;
  return Element::f32;
}

bool is_tnd(std::string_view layout) { return layout == "TND"; }
bool is_paged(std::string_view layout) { return layout == "PA_BSND"; }

const char* query_dimensions(std::string_view layout) {
  return is_tnd(layout) ? "[T, N1, D] for layout_query 'TND'"
                        : "[B, S1, N1, D] for layout_query 'BSND'";
}

const char* key_dimensions(std::string_view layout) {
  if (is_tnd(layout)) return "[T2, N2, D] for layout_key 'TND'";
  return is_paged(layout) ? "[blocks, block_size, N2, D] for layout_key 'PA_BSND'"
                          : "[B, S2, N2, D] for layout_key 'BSND'";
}

constexpr const char* kWeightsShape = "query's shape without its last dimension";

void check_layouts(const Arguments& a) {
  ScalarArg(kOp, "layout_query", a.layout_query).one_of({"BSND", "TND"});
  ScalarArg(kOp, "layout_key", a.layout_key).one_of({"PA_BSND", "BSND", "TND"});
  check(is_paged(a.layout_key) || a.layout_key == a.layout_query, kOp, "layout_key",
        "must be 'PA_BSND' or equal layout_query ('", a.layout_query, "'), got '", a.layout_key,
        "'");
  ScalarArg(kOp, "sparse_count", a.sparse_count).at_least(1);
  ScalarArg(kOp, "sparse_mode", a.sparse_mode).one_of({0, 3});
}

void check_tensors(const Arguments& a) {
  const Arg query(kOp, "query", a.query);
  query.rank(is_tnd(a.layout_query) ? 3 : 4, query_dimensions(a.layout_query))
      .dtype({ScalarType::BFloat16, ScalarType::Half, ScalarType::Float});
  const Arg key(kOp, "key", a.key);
  key.rank(is_tnd(a.layout_key) ? 3 : 4, key_dimensions(a.layout_key))
      .same_device(query)
      .same_dtype(query);
  const Arg weights(kOp, "weights", a.weights);
  weights.rank(a.query.dim() - 1, kWeightsShape).same_device(query);
  if (a.weights.scalar_type() != ScalarType::Float) weights.same_dtype(query);

  const auto query_sizes = a.query.sizes();
  for (int64_t dim = 0; dim < a.weights.dim(); ++dim) {
    weights.size(dim, query_sizes.data()[dim], kWeightsShape);
  }
  key.size(-1, query_sizes.back(), "the head size of query");
  const int64_t query_heads = query_sizes.data()[query_sizes.size() - 2];
  const int64_t key_heads = a.key.size(a.key.dim() - 2);
  check(query_sizes.back() >= 1 && query_heads >= 1, kOp, "query",
        "must have at least one head and a head size of at least 1, got ", query_sizes);
  check(key_heads >= 1 && query_heads % key_heads == 0, kOp, "key", "has ", key_heads,
        " heads, which must divide the ", query_heads, " heads of query");
  if (a.layout_key == "BSND")
    key.size(0, query_sizes.front(), "the batch size of query, for layout_key 'BSND'");
}

// A tensor of lengths or block numbers: int32 or int64, any strides.
class Integers {
 public:
  Integers(const Tensor& tensor)
      : data_(tensor.const_data_ptr()), wide_(tensor.scalar_type() == ScalarType::Long) {}

  int64_t operator[](int64_t index) const {
    return wide_ ? static_cast<const int64_t*>(data_)[index]
                 : static_cast<const int32_t*>(data_)[index];
  }

 private:
  const void* data_;
  bool wide_;
};

void read_integers(const Tensor& tensor, std::vector<int64_t>& out) {
  const Integers values(tensor);
  const int64_t count = tensor.size(0);
  const int64_t stride = tensor.stride(0);
  out.clear();
  for (int64_t i = 0; i < count; ++i) out.push_back(values[i * stride]);
}

const Arg& check_integers(const Arg& argument, const Arguments& a, int64_t rank) {
  return argument.rank(rank)
      .dtype({ScalarType::Int, ScalarType::Long})
      .same_device(Arg(kOp, "query", a.query));
}

int64_t sequence_count(const Arguments& a) {
  return is_tnd(a.layout_query) ? a.actual_seq_lengths_query->size(0) : a.query.size(0);
}

void check_query_lengths(const Arguments& a) {
  const std::optional<Tensor>& lengths = a.actual_seq_lengths_query;
  if (is_tnd(a.layout_query)) {
    check(lengths.has_value(), kOp, kQueryLengths,
          "is required with layout_query 'TND': the prefix sums of the sequences' query lengths,"
          " got None");
    check_integers(Arg(kOp, kQueryLengths, *lengths), a, 1);
  } else if (lengths.has_value()) {
    check_integers(Arg(kOp, kQueryLengths, *lengths), a, 1)
        .size(0, a.query.size(0), "the number of sequences");
  }
}

void check_key_lengths(const Arguments& a) {
  const std::optional<Tensor>& lengths = a.actual_seq_lengths_key;
  check(lengths.has_value() || !is_paged(a.layout_key), kOp, kKeyLengths,
        "is required with layout_key 'PA_BSND': one length per sequence, got None");
  check(lengths.has_value() || !is_tnd(a.layout_key), kOp, kKeyLengths,
        "is required with layout_key 'TND': the prefix sums of the sequences' key lengths,"
        " got None");
  if (!lengths.has_value()) return;
  const Arg argument(kOp, kKeyLengths, *lengths);
  check_integers(argument, a, 1);
  if (!is_tnd(a.layout_key)) {
    argument.size(0, sequence_count(a), "the number of sequences");
    return;
  }
  check(lengths->size(0) == sequence_count(a), kOp, kKeyLengths, "must have ", sequence_count(a),
        " prefix sums, one per sequence of actual_seq_lengths_query, got ", lengths->size(0));
}

void check_block_table(const Arguments& a) {
  if (!is_paged(a.layout_key)) {
    check(!a.block_table.has_value(), kOp, kBlockTable,
          "must be None unless layout_key is 'PA_BSND'; layout_key is '", a.layout_key, "'");
    return;
  }
  check(a.block_table.has_value(), kOp, kBlockTable,
        "is required with layout_key 'PA_BSND', got None");
  const Arg argument(kOp, kBlockTable, *a.block_table);
  check_integers(argument, a, 2).size(0, sequence_count(a), "the number of sequences");
  check(a.key.size(1) >= 1, kOp, "key", "must have a block size of at least 1, got ",
        a.key.sizes());
  check(a.key.size(0) <= std::numeric_limits<int32_t>::max(), kOp, "key",
        "must have fewer than 2^31 blocks, got ", a.key.size(0));
}

// Fills `lengths` with one length per sequence from a tensor of lengths.
void read_lengths(const char* name, const Tensor& tensor, int64_t longest, const char* limit,
                  std::vector<int64_t>& lengths) {
  read_integers(tensor, lengths);
  for (size_t b = 0; b < lengths.size(); ++b) {
    check(lengths[b] >= 0 && lengths[b] <= longest, kOp, name, "must lie between 0 and ", longest,
          " (", limit, "), got ", lengths[b], " for sequence ", b);
  }
}

// Fills `lengths` with one length per sequence from a tensor of prefix sums that end at `total`.
void read_prefix_sums(const char* name, const Tensor& tensor, int64_t total, const char* what,
                      std::vector<int64_t>& lengths) {
  read_integers(tensor, lengths);
  int64_t previous = 0;
  for (size_t b = 0; b < lengths.size(); ++b) {
    const int64_t sum = lengths[b];
    check(sum >= previous, kOp, name, "must be prefix sums, which never decrease, got ", sum,
          " after ", previous, " at sequence ", b);
    lengths[b] = sum - previous;
    previous = sum;
  }
  check(previous == total, kOp, name, "must be prefix sums that end at ", total, ", ", what,
        ", got ", previous);
}

void read_query_lengths(const Arguments& a, std::vector<int64_t>& lengths) {
  const std::optional<Tensor>& given = a.actual_seq_lengths_query;
  if (is_tnd(a.layout_query)) {
    return read_prefix_sums(kQueryLengths, *given, a.query.size(0), "the number of query tokens",
                            lengths);
  }
  const int64_t longest = a.query.size(1);
  if (!given.has_value()) return lengths.assign(static_cast<size_t>(a.query.size(0)), longest);
  read_integers(*given, lengths);
  for (size_t b = 0; b < lengths.size(); ++b) {
    check(lengths[b] >= 0, kOp, kQueryLengths, "must be at least 0, got ", lengths[b],
          " for sequence ", b);
    // Prefix sums, which published models pass, are right where sequences are whole.
    lengths[b] = std::min(lengths[b], longest);
  }
}

void read_key_lengths(const Arguments& a, std::vector<int64_t>& lengths) {
  const std::optional<Tensor>& given = a.actual_seq_lengths_key;
  if (is_paged(a.layout_key)) {
    return read_lengths(kKeyLengths, *given, a.block_table->size(1) * a.key.size(1),
                        "what a row of block_table can hold", lengths);
  }
  if (is_tnd(a.layout_key)) {
    return read_prefix_sums(kKeyLengths, *given, a.key.size(0), "the number of keys", lengths);
  }
  const int64_t longest = a.key.size(1);
  if (!given.has_value()) return lengths.assign(static_cast<size_t>(sequence_count(a)), longest);
  read_lengths(kKeyLengths, *given, longest, "the keys of a sequence", lengths);
}

// Appends the blocks that the first `tokens` keys of sequence `b` lie in.
void read_blocks(const Arguments& a, int64_t b, int64_t tokens, std::vector<int32_t>& blocks) {
  const Integers table(*a.block_table);
  const int64_t row = b * a.block_table->stride(0);
  const int64_t step = a.block_table->stride(1);
  const int64_t block_size = a.key.size(1);
  const int64_t available = a.key.size(0);
  const int64_t needed = (tokens + block_size - 1) / block_size;
  for (int64_t i = 0; i < needed; ++i) {
    const int64_t block = table[row + i * step];
    check(block >= 0 && block < available, kOp, kBlockTable, "must hold blocks between 0 and ",
          available - 1, " (the blocks of key) where sequence ", b, " of length ", tokens,
          " needs them, got ", block, " at [", b, ", ", i, "]");
    blocks.push_back(static_cast<int32_t>(block));
  }
}

const char* offset(const Tensor& tensor, int64_t elements) {
  const auto size = static_cast<int64_t>(element_size(element_of(tensor.scalar_type())));
  return static_cast<const char*>(tensor.const_data_ptr()) + elements * size;
}

}  // namespace

void check_arguments(const Arguments& a) {
  check_layouts(a);
  check_tensors(a);
  check_query_lengths(a);
  check_block_table(a);
  check_key_lengths(a);
}

void read_problem(const Arguments& a, Problem& problem) {
  check_arguments(a);
  const bool tnd = is_tnd(a.layout_query);
  const bool paged = is_paged(a.layout_key);
  read_query_lengths(a, problem.query_lengths);
  const auto batch = static_cast<int64_t>(problem.query_lengths.size());
  read_key_lengths(a, problem.key_lengths);

  const int64_t rank = a.query.dim();
  const int64_t query_heads = a.query.size(rank - 2);
  const int64_t key_rank = a.key.dim();
  problem.rows = tnd ? a.query.size(0) : batch * a.query.size(1);
  problem.key_heads = a.key.size(key_rank - 2);
  problem.group = query_heads / problem.key_heads;
  problem.sparse_count = a.sparse_count;
  problem.causal = a.sparse_mode == 3;
  problem.query_row_stride = a.query.stride(rank - 3);
  problem.weights_row_stride = a.weights.stride(rank - 3);
  problem.key_head_stride = a.key.stride(key_rank - 2);
  problem.query = {nullptr,
                   a.query.stride(rank - 2),
                   a.query.stride(rank - 1),
                   nullptr,
                   a.weights.stride(rank - 2),
                   problem.group,
                   element_of(a.query.scalar_type()),
                   element_of(a.weights.scalar_type())};

  problem.blocks.clear();
  problem.sequences.clear();
  int64_t query_token = 0;
  int64_t key_token = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const auto index = static_cast<size_t>(b);
    Sequence sequence{};
    sequence.rows = problem.query_lengths[index];
    sequence.tokens = problem.key_lengths[index];
    check(sequence.tokens <= kMostTokens, kOp, kKeyLengths, "must be at most ", kMostTokens,
          " (positions are int32), got ", sequence.tokens, " for sequence ", b);
    sequence.first_row = tnd ? query_token : b * a.query.size(1);
    const int64_t query_step = tnd ? query_token : b;
    sequence.query = offset(a.query, query_step * a.query.stride(0));
    sequence.weights = offset(a.weights, query_step * a.weights.stride(0));
    Keys& keys = sequence.keys;
    keys.stride = a.key.stride(key_rank - 1);
    keys.token_stride = a.key.stride(key_rank - 3);
    keys.depth = a.key.size(key_rank - 1);
    keys.element = element_of(a.key.scalar_type());
    if (paged) {
      keys.data = offset(a.key, 0);
      keys.block_size = a.key.size(1);
      keys.block_stride = a.key.stride(0);
      if (sequence.rows > 0) read_blocks(a, b, sequence.tokens, problem.blocks);
    } else {
      keys.data = offset(a.key, (tnd ? key_token : b) * a.key.stride(0));
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
    const int64_t size = sequence.keys.block_size;
    if (sequence.rows > 0) blocks += (sequence.tokens + size - 1) / size;
  }
}

}  // namespace custom_pypto_lightning_indexer
