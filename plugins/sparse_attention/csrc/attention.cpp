#include "attention.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>

#include "kernel_choice.h"
#include "scratch.h"

namespace custom_pypto_sparse_attention {
namespace {

constexpr const char* kLengthsQuery = "actual_seq_lengths_query";
// Rows that are split by ranges of keys for each thread, so that all threads finish together.
constexpr int64_t kSplitRowsOfThread = 2;
// Memory for what the ranges of split rows give.
constexpr int64_t kSplitBytes = int64_t{16} << 20;

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

  void put(AttendTask& task) const {
    task.latent_rows = latent.data();
    task.rope_rows = rope.data();
    task.count = static_cast<int64_t>(latent.size());
  }
};

// The last rows, cut into ranges of keys and, where these are fewer than the threads, groups of
// heads. The thread that finishes a row's last range puts them together. Nothing of this changes a
// bit of the result.
class Attention::SplitRows {
 public:
  void choose(const Attention& attention, const Output& output, int64_t threads);
  int64_t rows() const { return static_cast<int64_t>(rows_.size()); }
  int64_t units() const { return static_cast<int64_t>(units_.size()); }
  void run(const Attention& attention, int64_t unit);

 private:
  struct Part {
    AttendTask task;
    int64_t partials_at;
    int64_t partial_bytes;
  };
  struct Unit {
    int64_t part;
    int64_t range;
  };

  void cut(const Attention& attention, int64_t groups);

  std::vector<AttendTask> rows_;
  std::vector<Selection> selections_;
  std::vector<Part> parts_;
  std::vector<Unit> units_;
  std::unique_ptr<std::atomic<int64_t>[]> unfinished_;  // ranges of each part
  std::size_t unfinished_room_ = 0;
  Scratch memory_;
  char* partials_ = nullptr;
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
  const Output output{
      static_cast<char*>(outputs.out.mutable_data_ptr()),
      with_log_sum_exp ? static_cast<float*>(outputs.log_sum_exp.mutable_data_ptr()) : nullptr};
  if (heads_ == 0) return outputs;
  const int64_t threads = custom_pypto::num_threads();
  thread_local SplitRows split;
  split.choose(*this, output, threads);
  const int64_t whole = static_cast<int64_t>(rows_.size()) - split.rows();
  const int64_t units = whole + split.units();
  // Rows take different times; each thread takes the next unit when it is done with one.
  std::atomic<int64_t> next{0};
  SplitRows& rest = split;  // this thread's, for all
  custom_pypto::parallel_for(0, std::min(threads, units), 1, [&](int64_t, int64_t) {
    for (int64_t unit = next++; unit < units; unit = next++) {
      if (unit < whole) {
        run_row(unit, output);
      } else {
        rest.run(*this, unit - whole);
      }
    }
  });
  return outputs;
}

AttendTask Attention::task_of(int64_t row, const Output& output) const {
  const int64_t bytes = bytes_of(element_);
  const int64_t head = row * heads_;
  AttendTask task = {};
  task.heads = heads_;
  task.latent = latent_;
  task.rope = rope_;
  task.query = static_cast<const char*>(query_.const_data_ptr()) + head * latent_ * bytes;
  task.query_head_stride = latent_;
  task.query_rope = static_cast<const char*>(query_rope_.const_data_ptr()) + head * rope_ * bytes;
  task.query_rope_head_stride = rope_;
  task.scale = scale_;
  task.out = output.out + head * latent_ * bytes;
  task.out_head_stride = latent_;
  task.log_sum_exp = output.log_sum_exp == nullptr ? nullptr : output.log_sum_exp + head;
  return task;
}

AttendTask Attention::heads_of(AttendTask task, int64_t first, int64_t count) const {
  const int64_t bytes = bytes_of(element_);
  task.heads = count;
  task.query = static_cast<const char*>(task.query) + first * latent_ * bytes;
  task.query_rope = static_cast<const char*>(task.query_rope) + first * rope_ * bytes;
  task.out = static_cast<char*>(task.out) + first * latent_ * bytes;
  if (task.log_sum_exp != nullptr) task.log_sum_exp += first;
  return task;
}

void Attention::run_row(int64_t row, const Output& output) const {
  thread_local Selection selection;
  select(row, selection);
  AttendTask task = task_of(row, output);
  selection.put(task);
  if (task.count == 0) return write_nothing(task);
  const KernelTable& table = kernels();
  const auto element = static_cast<int>(element_);
  table.attend[element](task,
                        Scratch::of_thread(table.attend_scratch[element](heads_, latent_, rope_)));
}

void Attention::write_nothing(const AttendTask& task) const {
  std::memset(task.out, 0, static_cast<std::size_t>(task.heads * latent_ * bytes_of(element_)));
  if (task.log_sum_exp == nullptr) return;
  std::fill_n(task.log_sum_exp, task.heads, -std::numeric_limits<float>::infinity());
}

void Attention::SplitRows::choose(const Attention& attention, const Output& output,
                                  int64_t threads) {
  rows_.clear();
  units_.clear();
  if (threads == 1) return;
  const KernelTable& table = kernels();
  const auto element = static_cast<int>(attention.element_);
  const auto all = static_cast<int64_t>(attention.rows_.size());
  const int64_t row_bytes = table.attend_partial[element](attention.heads_, attention.latent_) *
                            std::max<int64_t>(attend_ranges(attention.count_), 1);
  const int64_t rows =
      std::min({all, kSplitRowsOfThread * threads, std::max<int64_t>(kSplitBytes / row_bytes, 1)});
  rows_.resize(static_cast<std::size_t>(rows));
  selections_.resize(std::max(selections_.size(), rows_.size()));
  custom_pypto::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      attention.select(all - rows + i, selections_[static_cast<std::size_t>(i)]);
    }
  });

  int64_t ranges = 0;
  for (int64_t i = 0; i < rows; ++i) {
    AttendTask& task = rows_[static_cast<std::size_t>(i)];
    task = attention.task_of(all - rows + i, output);
    selections_[static_cast<std::size_t>(i)].put(task);
    ranges += attend_ranges(task.count);
  }
  cut(attention, ranges == 0 ? 1 : divide_up(threads, ranges));
}

void Attention::SplitRows::cut(const Attention& attention, int64_t groups) {
  const KernelTable& table = kernels();
  const auto element = static_cast<int>(attention.element_);
  const int64_t panels = divide_up(attention.heads_, table.attend_panel);
  const int64_t heads = divide_up(panels, std::min(groups, panels)) * table.attend_panel;
  parts_.clear();
  int64_t bytes = 0;
  for (const AttendTask& row : rows_) {
    for (int64_t first = 0; first < row.heads; first += heads) {
      const AttendTask task = attention.heads_of(row, first, std::min(heads, row.heads - first));
      if (task.count == 0) {
        attention.write_nothing(task);
        continue;
      }
      const int64_t ranges = attend_ranges(task.count);
      const int64_t size = table.attend_partial[element](task.heads, task.latent);
      for (int64_t range = 0; range < ranges; ++range) {
        units_.push_back({static_cast<int64_t>(parts_.size()), range});
      }
      parts_.push_back({task, bytes, size});
      bytes += ranges * size;
    }
  }
  partials_ = memory_.reserve(static_cast<std::size_t>(bytes));
  if (parts_.size() > unfinished_room_) {
    unfinished_ = std::make_unique<std::atomic<int64_t>[]>(parts_.size());
    unfinished_room_ = parts_.size();
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    unfinished_[i].store(attend_ranges(parts_[i].task.count), std::memory_order_relaxed);
  }
}

void Attention::SplitRows::run(const Attention& attention, int64_t index) {
  const Unit& unit = units_[static_cast<std::size_t>(index)];
  const Part& part = parts_[static_cast<std::size_t>(unit.part)];
  const AttendTask& task = part.task;
  const KernelTable& table = kernels();
  const auto element = static_cast<int>(attention.element_);
  char* scratch =
      Scratch::of_thread(table.attend_scratch[element](task.heads, task.latent, task.rope));
  char* partials = partials_ + part.partials_at;
  table.attend_range[element](task, unit.range, partials + unit.range * part.partial_bytes,
                              scratch);
  auto& unfinished = unfinished_[static_cast<std::size_t>(unit.part)];
  if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    table.attend_finish[element](task, partials, scratch);
  }
}

}  // namespace custom_pypto_sparse_attention
