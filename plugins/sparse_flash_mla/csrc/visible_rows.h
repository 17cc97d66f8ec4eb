// Which rows of ori_kv and cmp_kv each query token attends to.
#pragma once

#include <custom_pypto/message.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/paged_cache.h>
#include <custom_pypto_blocks/paging.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops.h"

namespace custom_pypto_sparse_flash_mla {

using namespace custom_pypto;

// Rows [begin, end) of a sequence.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t count() const { return end > begin ? end - begin : 0; }
};

// The arguments of one tensor of rows, ori_kv or cmp_kv.
struct RowsArguments {
  std::string name;  // "ori" or "cmp", which the arguments' names have
  const std::optional<Tensor>& kv;
  const Tensor* block_table;  // of pages, else null
  const std::optional<Tensor>& starts;
  const std::optional<Tensor>& lengths;
  const std::optional<Tensor>& indices;
  const std::optional<Tensor>& index_counts;
};

// The rows of all sequences in one tensor, and which of them each query lists.
class Rows {
 public:
  // Checks lengths and numbers of indices. Throws std::runtime_error that begins with `op` and
  // names the argument.
  Rows(const char* op, ops::LayoutKv layout, int64_t sequences, const RowsArguments& arguments);

  int64_t length(int64_t sequence) const { return lengths_[static_cast<std::size_t>(sequence)]; }
  int64_t slots() const { return cache_.slots(); }
  // A slot is a row's place in the whole tensor.
  const char* row(int64_t slot) const { return cache_.row(slot); }
  // The number of indices of each query; 0 if it sees all rows of a range.
  int64_t indices() const { return listed_; }

  // No query attends to more rows of `range` than this.
  int64_t most(const Range& range) const { return indices_ ? listed_ : range.count(); }

  // Calls f(slot, index) for each row of `range` that a query attends to: all of them, with index
  // -1, or those that it lists, as often as it lists them. -1 lists nothing. Checks the indices and
  // the blocks that are needed.
  template <class F>
  void for_each(int64_t query, int64_t sequence, const Range& range, const F& f) const {
    if (!indices_) {
      for (int64_t row = range.begin; row < range.end; ++row)
        f(slot_of(sequence, row), int64_t{-1});
      return;
    }
    const int64_t count = index_counts_.empty() ? listed_ : index_counts_[std::size_t(query)];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = (*indices_)[query * listed_ + i];
      if (row == -1) continue;
      check(row >= 0 && row < length(sequence), op_, indices_name_.c_str(),
            "must hold -1 or rows below ", length(sequence), ", which sequence ", sequence,
            " has, got ", row);
      if (row >= range.begin && row < range.end) f(slot_of(sequence, row), i);
    }
  }

 private:
  void read_lengths_of(const RowsArguments& a, ops::LayoutKv layout, int64_t sequences);
  int64_t slot_of(int64_t sequence, int64_t row) const;

  const char* op_;
  PagedCache cache_;
  std::vector<int64_t> lengths_;
  std::vector<int64_t> starts_;  // the slot of each sequence's first row, unless rows are paged
  std::string block_table_name_;
  std::optional<BlockTable> block_table_;
  std::string indices_name_;
  Tensor own_indices_;
  std::optional<Integers> indices_;
  int64_t listed_ = 0;
  std::vector<int64_t> index_counts_;
};

// The rows of both tensors that each query token attends to. Makes one unless q is empty.
class VisibleRows {
 public:
  struct Query {
    int64_t sequence;  // -1: past the end of its sequence, or of all
    Range ori;
    Range cmp;
  };

  // Throws as Rows does.
  VisibleRows(const char* op, const ops::visible::Arguments& arguments,
              const ops::visible::CallShape& sizes, const RowsArguments& ori,
              const RowsArguments& cmp);

  const std::vector<Query>& queries() const { return queries_; }
  const Rows& ori() const { return ori_; }
  const std::optional<Rows>& cmp() const { return cmp_; }

  // No query attends to more rows than this says.
  int64_t most(int64_t query) const {
    const Query& q = queries_[static_cast<std::size_t>(query)];
    if (q.sequence < 0) return 0;
    return ori_.most(q.ori) + (cmp_ ? cmp_->most(q.cmp) : 0);
  }

  // Calls f(rows, slot, index) for each row that a query attends to: those of ori_kv, then those of
  // cmp_kv.
  template <class F>
  void for_each(int64_t query, const F& f) const {
    const Query& q = queries_[static_cast<std::size_t>(query)];
    if (q.sequence < 0) return;
    const auto visit = [&](const Rows& rows, const Range& range) {
      rows.for_each(query, q.sequence, range,
                    [&](int64_t slot, int64_t index) { f(rows, slot, index); });
    };
    visit(ori_, q.ori);
    if (cmp_) visit(*cmp_, q.cmp);
  }

 private:
  Rows ori_;
  std::optional<Rows> cmp_;
  std::vector<Query> queries_;
};

}  // namespace custom_pypto_sparse_flash_mla
