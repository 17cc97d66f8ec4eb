// Reads and checks lengths; finds the rows that each query token sees.
#include "visible_rows.h"

#include <custom_pypto_blocks/divide.h>

#include <algorithm>
#include <limits>

namespace custom_pypto_sparse_flash_mla {
namespace {

using ops::LayoutKv;
using ops::LayoutQ;

// Masks of ori_mask_mode and cmp_mask_mode; 0 is none.
constexpr int64_t kCausal = 3;
constexpr int64_t kBand = 4;
// What ori_win_left and ori_win_right say of a side without an end.
constexpr int64_t kUnbounded = -1;

PagedCache cache_of_rows(const char* op, const char* name, const Tensor& kv, LayoutKv layout) {
  const PagedCache cache = cache_of(op, name, kv, CacheUse::read);
  if (layout != LayoutKv::TND) return cache;
  return {cache.data, 1, cache.blocks, 0, cache.block_stride};
}

// The lengths of the sequences that begin at `starts`, [sequences + 1].
std::vector<int64_t> lengths_between(const char* op, const char* name, const Tensor& starts,
                                     int64_t tokens) {
  std::vector<int64_t> lengths;
  const auto fail_at = [&](int64_t sum, int64_t index, int64_t before) {
    fail(op, name, "must be prefix sums that begin with 0 and are at most ", tokens, ", got ", sum,
         " at ", index, " after ", before);
  };
  read_prefix_sums(starts, tokens, lengths, fail_at, true);
  return lengths;
}

// Replaces lengths by those of `used`, if it is given, which must not be larger.
void shorten(const char* op, const char* name, const std::optional<Tensor>& used,
             std::vector<int64_t>& lengths) {
  if (!used) return;
  const std::vector<int64_t> longest = std::move(lengths);
  read_lengths(*used, std::numeric_limits<int64_t>::max(), lengths, [&](int64_t length, int64_t b) {
    fail(op, name, "must be at least 0, got ", length, " for sequence ", b);
  });
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    check(lengths[b] <= longest[b], op, name, "must be from 0 to ", longest[b], " for sequence ",
          int64_t(b), ", got ", lengths[b]);
  }
}

std::vector<int64_t> starts_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> starts;
  int64_t start = 0;
  for (const int64_t length : lengths) {
    starts.push_back(start);
    start += length;
  }
  return starts;
}

// floor(t / ratio), also for t below 0.
int64_t floor_divide(int64_t t, int64_t ratio) {
  return t >= 0 ? t / ratio : -divide_up(-t, ratio);
}

// The window of the token that has `before` tokens of `length` up to and with itself.
Range window(const ops::visible::Arguments& a, int64_t before, int64_t length) {
  if (a.ori_mask_mode == kCausal) return {0, std::min(before, length)};
  if (a.ori_mask_mode != kBand) return {0, length};
  Range range{0, length};
  // Not before - win_left, which may overflow.
  if (a.ori_win_left != kUnbounded && a.ori_win_left < before) {
    range.begin = before - 1 - a.ori_win_left;
  }
  if (a.ori_win_right != kUnbounded && a.ori_win_right < length - before) {
    range.end = before + a.ori_win_right;
  }
  return range;
}

}  // namespace

Rows::Rows(const char* op, LayoutKv layout, int64_t sequences, const RowsArguments& a)
    : op_(op),
      cache_(cache_of_rows(op, (a.name + "_kv").c_str(), *a.kv, layout)),
      block_table_name_(a.name + "_block_table"),
      indices_name_(a.name + "_sparse_indices") {
  if (a.block_table != nullptr) block_table_.emplace(*a.block_table);
  read_lengths_of(a, layout, sequences);
  if (!a.indices) return;
  own_indices_ = to_contiguous(*a.indices);
  indices_.emplace(own_indices_);
  listed_ = a.indices->size(a.indices->dim() - 1);
  if (!a.index_counts) return;
  const Tensor counts = to_contiguous(*a.index_counts);
  const Integers values(counts);
  const std::string name = a.name + "_topk_length";
  for (int64_t i = 0; i < counts.numel(); ++i) {
    check(values[i] >= 0 && values[i] <= listed_, op, name.c_str(), "must be from 0 to ", listed_,
          ", the number of ", indices_name_, ", got ", values[i]);
    index_counts_.push_back(values[i]);
  }
}

void Rows::read_lengths_of(const RowsArguments& a, LayoutKv layout, int64_t sequences) {
  if (layout == LayoutKv::TND) {
    lengths_ =
        lengths_between(op_, ("cu_seqlens_" + a.name + "_kv").c_str(), *a.starts, cache_.slots());
    starts_ = starts_of(lengths_);
  } else {
    const bool is_paged = layout == LayoutKv::PA_BBND;
    const int64_t longest = tokens_of(is_paged ? a.block_table->size(1) : 1, cache_.block_size);
    lengths_.assign(static_cast<std::size_t>(sequences), longest);
    if (!is_paged) {
      for (int64_t b = 0; b < sequences; ++b) starts_.push_back(b * cache_.block_size);
    }
  }
  shorten(op_, ("seqused_" + a.name + "_kv").c_str(), a.lengths, lengths_);
}

int64_t Rows::slot_of(int64_t sequence, int64_t row) const {
  if (!block_table_) return starts_[static_cast<std::size_t>(sequence)] + row;
  const int64_t index = row / cache_.block_size;
  const int64_t block = block_table_->block(sequence, index, cache_.blocks, [&](int64_t found) {
    fail(op_, block_table_name_.c_str(), "must hold a block from 0 to ", cache_.blocks - 1, " at [",
         sequence, ", ", index, "], which is needed, got ", found);
  });
  return block * cache_.block_size + row % cache_.block_size;
}

VisibleRows::VisibleRows(const char* op, const ops::visible::Arguments& a,
                         const ops::visible::CallShape& s, const RowsArguments& ori,
                         const RowsArguments& cmp)
    : ori_(op, s.layout_kv, s.B, ori) {
  if (cmp.kv) cmp_.emplace(op, s.layout_kv, s.B, cmp);
  const bool is_tnd = s.layout_q == LayoutQ::TND;
  std::vector<int64_t> tokens(static_cast<std::size_t>(s.B), s.S);
  if (is_tnd) tokens = lengths_between(op, "cu_seqlens_q", *a.cu_seqlens_q, s.T);
  const std::vector<int64_t> places = tokens;
  shorten(op, "seqused_q", a.seqused_q, tokens);
  std::vector<int64_t> residuals;
  if (a.cmp_residual_kv) {
    read_lengths(*a.cmp_residual_kv, a.cmp_ratio - 1, residuals, [&](int64_t found, int64_t b) {
      fail(op, "cmp_residual_kv", "must be from 0 to ", a.cmp_ratio - 1,
           ", less than cmp_ratio, got ", found, " for sequence ", b);
    });
  }
  const auto all = static_cast<std::size_t>(is_tnd ? s.T : s.B * s.S);
  queries_.reserve(all);
  for (int64_t b = 0; b < s.B; ++b) {
    const auto at = static_cast<std::size_t>(b);
    const int64_t rows = ori_.length(b);
    const int64_t compressed = cmp_ ? cmp_->length(b) : 0;
    // The tokens that the compressed rows' mask counts.
    const int64_t masked = residuals.empty() ? rows : compressed * a.cmp_ratio + residuals[at];
    for (int64_t token = 0; token < tokens[at]; ++token) {
      const int64_t behind = tokens[at] - 1 - token;
      Query query{b, window(a, rows - behind, rows), {0, compressed}};
      if (a.cmp_mask_mode == kCausal) {
        query.cmp.end = std::min(floor_divide(masked - behind, a.cmp_ratio), compressed);
      }
      queries_.push_back(query);
    }
    queries_.resize(queries_.size() + static_cast<std::size_t>(places[at] - tokens[at]),
                    {-1, {}, {}});
  }
  queries_.resize(all, {-1, {}, {}});
}

}  // namespace custom_pypto_sparse_flash_mla
