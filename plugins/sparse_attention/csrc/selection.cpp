// Reads and checks lengths; divides the query tokens among the sequences.
#include "selection.h"

#include <custom_pypto_blocks/divide.h>

#include <limits>

namespace custom_pypto_sparse_attention {

PagedCache keys_of(const char* op, const char* name, const Tensor& keys) {
  const PagedCache cache = cache_of(op, name, keys, CacheUse::read);
  if (keys.dim() > 3) return cache;
  return {cache.data, 1, cache.blocks, 0, cache.block_stride};
}

std::vector<int64_t> read_key_lengths(const char* op, const char* name, const Tensor& lengths,
                                      int64_t width, int64_t block_size) {
  const int64_t longest = tokens_of(width, block_size);
  std::vector<int64_t> result;
  read_lengths(lengths, longest, result, [&](int64_t length, int64_t sequence) {
    fail(op, name, "must be from 0 to ", longest, " (", width, " blocks of ", block_size,
         " in a row of block_table), got ", length, " for sequence ", sequence);
  });
  return result;
}

void check_blocks(const char* op, const Tensor& block_table, const std::vector<int64_t>& lengths,
                  const PagedCache& cache) {
  const BlockTable table(block_table);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const int64_t needed = divide_up(lengths[b], cache.block_size);
    for (int64_t index = 0; index < needed; ++index) {
      needed_block(op, table, static_cast<int64_t>(b), index, cache.blocks);
    }
  }
}

Selection::Selection(const SelectionArguments& a)
    : op_(a.op),
      listed_(a.sparse_indices.size(a.sparse_indices.dim() - 1)),
      sparse_indices_(to_contiguous(a.sparse_indices)),
      indices_(sparse_indices_) {
  if (a.layout == KeyLayout::paged) {
    block_table_.emplace(*a.block_table);
    blocks_ = a.keys.size(0);
    block_size_ = a.keys.size(1);
    lengths_ = custom_pypto_sparse_attention::read_key_lengths(
        op_, a.lengths_kv_name, *a.lengths_kv, a.block_table->size(1), block_size_);
  } else if (a.layout == KeyLayout::tnd) {
    const int64_t tokens = a.keys.size(0);
    read_prefix_sums(*a.lengths_kv, tokens, lengths_,
                     [&](int64_t sum, int64_t sequence, int64_t before) {
                       fail(op_, a.lengths_kv_name, "must be prefix sums, from 0 to the ", tokens,
                            " keys, got ", sum, " for sequence ", sequence, " after ", before);
                     });
    int64_t start = 0;
    for (const int64_t length : lengths_) {
      starts_.push_back(start);
      start += length;
    }
  } else if (a.lengths_kv.has_value()) {
    const int64_t keys = a.keys.size(1);
    read_lengths(*a.lengths_kv, keys, lengths_, [&](int64_t length, int64_t sequence) {
      fail(op_, a.lengths_kv_name, "must be from 0 to ", keys, ", the keys of a sequence, got ",
           length, " for sequence ", sequence);
    });
  } else {
    lengths_.assign(static_cast<std::size_t>(a.keys.size(0)), a.keys.size(1));
  }
  read_rows(a);
}

void Selection::read_rows(const SelectionArguments& a) {
  const bool is_tnd = a.query.dim() == 3;
  const int64_t tokens = a.query.size(is_tnd ? 0 : 1);
  const auto sequences = static_cast<int64_t>(lengths_.size());
  std::vector<int64_t> counts(lengths_.size(), tokens);  // of each sequence's query tokens
  if (is_tnd) {
    read_prefix_sums(
        *a.lengths_query, tokens, counts, [&](int64_t sum, int64_t sequence, int64_t before) {
          fail(op_, a.lengths_query_name, "must be prefix sums, from 0 to the ", tokens,
               " tokens of query, got ", sum, " for sequence ", sequence, " after ", before);
        });
  } else if (a.lengths_query.has_value()) {
    read_lengths(*a.lengths_query, std::numeric_limits<int64_t>::max(), counts,
                 [&](int64_t length, int64_t sequence) {
                   fail(op_, a.lengths_query_name, "must be at least 0, got ", length,
                        " for sequence ", sequence);
                 });
    // Prefix sums, which published models pass, are right where sequences are whole.
    for (int64_t& count : counts) count = std::min(count, tokens);
  }

  constexpr Row kPadding = {-1, 0};
  const auto all = static_cast<std::size_t>(is_tnd ? tokens : tokens * sequences);
  rows_.reserve(all);
  for (int64_t b = 0; b < sequences; ++b) {
    const int64_t count = counts[static_cast<std::size_t>(b)];
    const int64_t length = lengths_[static_cast<std::size_t>(b)];
    for (int64_t token = 0; token < count; ++token) {
      rows_.push_back({b, a.sparse_mode == kCausal ? length - (count - 1 - token) : length});
    }
    if (!is_tnd) rows_.insert(rows_.end(), static_cast<std::size_t>(tokens - count), kPadding);
  }
  rows_.resize(all, kPadding);
}

}  // namespace custom_pypto_sparse_attention
