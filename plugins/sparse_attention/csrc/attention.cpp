#include "attention.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "kernel_choice.h"
#include "scratch.h"

namespace custom_pypto_sparse_attention {
namespace {

constexpr const char* kLengthsQuery = "actual_seq_lengths_query";
// Heads that are worth gathering the keys for.
constexpr int64_t kHeadsOfGroup = 64;
// Units of work for each thread, so that rows of different lengths even out.
constexpr int64_t kUnitsOfThread = 4;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The number of sequences, by what is sure to have one entry for each.
int64_t sequence_count(const AttentionArguments& a) {
  return a.block_table.dim() == 0 ? 0 : a.block_table.size(0);
}

}  // namespace

// Where the latent and rope parts of a row's selected keys are.
struct Attention::Selection {
  std::vector<const void*> latent;
  std::vector<const void*> rope;
};

Attention::Attention(const char* op, const AttentionArguments& a)
    : op_(op),
      indices_(Arg(op, "sparse_indices", a.sparse_indices)),
      block_table_(Arg(op, "block_table", a.block_table), Arg(op, "query", a.query),
                   sequence_count(a)),
      causal_(a.sparse_mode == 3),
      scale_(static_cast<float>(a.scale)) {
  const Arg query(op, "query", a.query);
  query.rank({3, 4});
  check_activations(query);
  element_ = element_of(a.query.scalar_type());
  query_ = dense(a.query);
  latent_ = a.query.size(-1);
  heads_ = a.query.size(-2);

  const Arg query_rope(op, "query_rope", a.query_rope);
  query_rope.rank(a.query.dim()).same_dtype(query).same_device(query);
  for (int64_t dim = 0; dim + 1 < a.query.dim(); ++dim) {
    query_rope.size(dim, a.query.size(dim), "query's shape but for the last dimension");
  }
  query_rope_ = dense(a.query_rope);
  rope_ = a.query_rope.size(-1);
  check(latent_ + rope_ >= 1, op, "query",
        "must have, with query_rope, a head size of at least 1, got ", a.query.sizes());

  const Arg kv_cache(op, "kv_cache", a.kv_cache);
  const Arg kr_cache(op, "kr_cache", a.kr_cache);
  kv_cache_ = check_cache(kv_cache, query, latent_, "the size of query's heads", CacheUse::read);
  kr_cache_ = check_cache(kr_cache, query, rope_, "the size of query_rope's heads", CacheUse::read);
  check_same_blocks(kr_cache, kv_cache);

  const Arg indices(op, "sparse_indices", a.sparse_indices);
  indices.rank(a.query.dim()).same_device(query).size(-2, 1, "one key head");
  for (int64_t dim = 0; dim + 2 < a.query.dim(); ++dim) {
    indices.size(dim, a.query.size(dim), "as many tokens as query");
  }
  count_ = a.sparse_indices.size(-1);

  custom_pypto::ScalarArg(op, "sparse_mode", a.sparse_mode).one_of({0, 3});
  lengths_ = read_lengths(Arg(op, "actual_seq_lengths_kv", a.actual_seq_lengths_kv), query,
                          sequence_count(a), block_table_, kv_cache_.block_size);
  rows_ = rows_of(query, a.actual_seq_lengths_query);
}

std::vector<Attention::Row> Attention::rows_of(const Arg& query,
                                               const std::optional<Tensor>& lengths_query) const {
  const bool is_tnd = query.tensor().dim() == 3;
  check(!is_tnd || lengths_query.has_value(), op_, kLengthsQuery,
        "is required with a 3-D query [T, N, D]: the prefix sums of the sequences' query lengths,"
        " got None");
  const int64_t tokens = query.tensor().size(is_tnd ? 0 : 1);
  if (!is_tnd) {
    query.size(0, sequences(), "the rows of block_table");
  }
  std::vector<int64_t> ends;
  if (lengths_query.has_value()) {
    const Arg argument(op_, kLengthsQuery, *lengths_query);
    argument.rank(1).same_device(query).size(0, sequences(), "the rows of block_table");
    const Integers values(argument);
    for (int64_t b = 0; b < sequences(); ++b) ends.push_back(values[b]);
  } else {
    ends.assign(lengths_.size(), tokens);
  }

  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(is_tnd ? tokens : tokens * sequences()));
  int64_t begin = 0;
  for (int64_t b = 0; b < sequences(); ++b) {
    const int64_t end = ends[static_cast<std::size_t>(b)];
    if (is_tnd) {
      check(end >= begin && end <= tokens, op_, kLengthsQuery,
            "must be prefix sums, from 0 to the ", tokens, " tokens of query, got ", end,
            " for sequence ", b, " after ", begin);
    } else {
      check(end >= 0 && end <= tokens, op_, kLengthsQuery, "must be from 0 to the ", tokens,
            " tokens of query, got ", end, " for sequence ", b);
    }
    const int64_t length = lengths_[static_cast<std::size_t>(b)];
    for (int64_t token = begin; token < end; ++token) {
      rows.push_back({b, causal_ ? length - (end - 1 - token) : length});
    }
    if (is_tnd) {
      begin = end;
    } else {
      rows.insert(rows.end(), static_cast<std::size_t>(tokens - end), {-1, 0});
    }
  }
  check(!is_tnd || begin == tokens, op_, kLengthsQuery, "must end at ", tokens,
        ", the number of query tokens, got ", begin);
  return rows;
}

void Attention::select(int64_t row, Selection& selection) const {
  selection.latent.clear();
  selection.rope.clear();
  const Row& token = rows_[static_cast<std::size_t>(row)];
  if (token.sequence < 0) return;
  const int64_t length = lengths_[static_cast<std::size_t>(token.sequence)];
  for (int64_t i = 0; i < count_; ++i) {
    const int64_t position = indices_[row * count_ + i];
    if (position == -1) continue;
    check(position >= 0 && position < length, op_, "sparse_indices",
          "must hold -1 or positions below ", length, ", the length of sequence ", token.sequence,
          ", got ", position);
    if (position >= token.visible) continue;
    const int64_t block = block_table_.checked_block(
        token.sequence, position / kv_cache_.block_size, kv_cache_.blocks);
    const int64_t offset = position % kv_cache_.block_size;
    selection.latent.push_back(kv_cache_.row(block, offset));
    selection.rope.push_back(kr_cache_.row(block, offset));
  }
}

AttentionOutputs Attention::run(bool with_log_sum_exp) const {
  std::vector<int64_t> sizes(query_.sizes().begin(), query_.sizes().end() - 1);
  if (!with_log_sum_exp) sizes = {0};
  AttentionOutputs outputs{custom_pypto::empty_like_contiguous(query_),
                           custom_pypto::empty(sizes, ScalarType::Float, query_)};
  float* log_sum_exp =
      with_log_sum_exp ? static_cast<float*>(outputs.log_sum_exp.mutable_data_ptr()) : nullptr;
  const int64_t threads = custom_pypto::num_threads();
  const int64_t groups = head_groups(threads);
  const int64_t panel = kernels().attend_panel;
  const int64_t heads = divide_up(divide_up(heads_, panel), groups) * panel;
  const int64_t units = static_cast<int64_t>(rows_.size()) * groups;
  // Rows take different times; each thread takes the next unit when it is done with one.
  std::atomic<int64_t> next{0};
  custom_pypto::parallel_for(0, std::min(threads, units), 1, [&](int64_t, int64_t) {
    for (int64_t unit = next++; unit < units; unit = next++) {
      const int64_t first = unit % groups * heads;
      const int64_t count = std::min(heads, heads_ - first);
      if (count > 0) run_unit(unit / groups, first, count, outputs, log_sum_exp);
    }
  });
  return outputs;
}

int64_t Attention::head_groups(int64_t threads) const {
  const auto rows = static_cast<int64_t>(rows_.size());
  if (rows == 0 || heads_ == 0) return 1;
  int64_t most = divide_up(heads_, kHeadsOfGroup);
  if (rows * most < threads) most = divide_up(heads_, kernels().attend_panel);
  return std::clamp<int64_t>(divide_up(kUnitsOfThread * threads, rows), 1, most);
}

void Attention::run_unit(int64_t row, int64_t first_head, int64_t heads,
                         const AttentionOutputs& outputs, float* log_sum_exp) const {
  thread_local Selection selection;
  select(row, selection);
  const int64_t bytes = bytes_of(element_);
  const int64_t head = row * heads_ + first_head;
  char* out = static_cast<char*>(outputs.out.mutable_data_ptr()) + head * latent_ * bytes;
  if (log_sum_exp != nullptr) log_sum_exp += head;
  if (selection.latent.empty()) {
    std::memset(out, 0, static_cast<std::size_t>(heads * latent_ * bytes));
    if (log_sum_exp != nullptr) {
      std::fill_n(log_sum_exp, heads, -std::numeric_limits<float>::infinity());
    }
    return;
  }
  AttendTask task = {};
  task.heads = heads;
  task.latent = latent_;
  task.rope = rope_;
  task.query = static_cast<const char*>(query_.const_data_ptr()) + head * latent_ * bytes;
  task.query_head_stride = latent_;
  task.query_rope = static_cast<const char*>(query_rope_.const_data_ptr()) + head * rope_ * bytes;
  task.query_rope_head_stride = rope_;
  task.latent_rows = selection.latent.data();
  task.rope_rows = selection.rope.data();
  task.count = static_cast<int64_t>(selection.latent.size());
  task.scale = scale_;
  task.out = out;
  task.out_head_stride = latent_;
  task.log_sum_exp = log_sum_exp;
  const KernelTable& table = kernels();
  const auto element = static_cast<int>(element_);
  table.attend[element](task,
                        Scratch::of_thread(table.attend_scratch[element](heads, latent_, rope_)));
}

}  // namespace custom_pypto_sparse_attention
