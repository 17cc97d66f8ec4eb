// The keys that each query token attends to: keys of sparse_indices that exist and that it sees.
#pragma once

#include <custom_pypto_blocks/paged_cache.h>
#include <custom_pypto_blocks/paging.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "common.h"

namespace custom_pypto_sparse_attention {

// Keys as attention reads them, from a cache [blocks, block_size, 1, size], from [sequences,
// tokens, 1, size], or from [tokens, 1, size], which becomes one block.
PagedCache keys_of(const char* op, const char* name, const Tensor& keys);

// The number of keys of each sequence; checked against the `width` blocks that a row of the block
// table holds. `name` is the name of the argument `lengths`.
std::vector<int64_t> read_key_lengths(const char* op, const char* name, const Tensor& lengths,
                                      int64_t width, int64_t block_size);

// The block that holds a sequence's tokens [index * block_size, ...), which it needs.
inline int64_t needed_block(const char* op, const BlockTable& table, int64_t sequence,
                            int64_t index, int64_t blocks) {
  return table.block(sequence, index, blocks, [&](int64_t found) {
    fail(op, "block_table", "must hold a block from 0 to ", blocks - 1, " at [", sequence, ", ",
         index, "], which is needed, got ", found);
  });
}

// Checks every block that sequences of these lengths need.
void check_blocks(const char* op, const Tensor& block_table, const std::vector<int64_t>& lengths,
                  const PagedCache& cache);

// The sparse_mode in which a token sees only the tokens before it and itself.
inline constexpr int64_t kCausal = 3;

enum class KeyLayout { paged, bsnd, tnd };

// The arguments that npu_sparse_flash_attention and its gradient have in common, with the names
// that each op's errors use.
struct SelectionArguments {
  const char* op;
  KeyLayout layout;
  const Tensor& query;  // [B, S1, ..] or [T, N1, L], for its sizes
  const Tensor& keys;   // of that layout, for its sizes
  const Tensor& sparse_indices;
  const std::optional<Tensor>& block_table;  // of paged keys
  const char* lengths_query_name;
  const std::optional<Tensor>& lengths_query;
  const char* lengths_kv_name;
  const std::optional<Tensor>& lengths_kv;
  int64_t sparse_mode;
};

// Making one checks all values but the indices and the blocks they need, which are checked as they
// are read.
class Selection {
 public:
  // A query token. `visible` positions of its sequence may be attended to.
  struct Row {
    int64_t sequence;  // -1: past the end of its sequence, or of all
    int64_t visible;
  };

  // Throws std::runtime_error that begins with the op and names the argument.
  explicit Selection(const SelectionArguments& arguments);

  const std::vector<Row>& rows() const { return rows_; }
  // The number of positions that a row lists.
  int64_t listed() const { return listed_; }

  // Calls f(block, token) for each key that a row attends to, in the order of its indices. If keys
  // are not paged, a sequence is a block; in the layout TND all keys are one block.
  template <class F>
  void for_each(int64_t row, const F& f) const {
    const Row& token = rows_[static_cast<std::size_t>(row)];
    if (token.sequence < 0) return;
    const int64_t length = lengths_[static_cast<std::size_t>(token.sequence)];
    for (int64_t i = 0; i < listed_; ++i) {
      const int64_t position = indices_[row * listed_ + i];
      if (position == -1) continue;
      check(position >= 0 && position < length, op_, "sparse_indices",
            "must hold -1 or positions below ", length, ", the length of sequence ", token.sequence,
            ", got ", position);
      if (position >= token.visible) continue;
      if (block_table_.has_value()) {
        f(needed_block(op_, *block_table_, token.sequence, position / block_size_, blocks_),
          position % block_size_);
      } else if (starts_.empty()) {
        f(token.sequence, position);
      } else {
        f(int64_t{0}, starts_[static_cast<std::size_t>(token.sequence)] + position);
      }
    }
  }

 private:
  void read_rows(const SelectionArguments& a);

  const char* op_;
  int64_t listed_;
  Tensor sparse_indices_;
  Integers indices_;
  std::optional<custom_pypto::BlockTable> block_table_;
  int64_t blocks_ = 0;
  int64_t block_size_ = 0;
  std::vector<int64_t> lengths_;
  std::vector<int64_t> starts_;  // of each sequence's keys, in the layout TND
  std::vector<Row> rows_;
};

}  // namespace custom_pypto_sparse_attention
