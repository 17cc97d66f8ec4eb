// npu_compressor on the CPU, and the registration of the ops.
#include <custom_pypto/message.h>
#include <custom_pypto_blocks/paged_cache.h>

#include "registered.h"
#include "rows.h"

namespace custom_pypto_compressor {
namespace {

using namespace custom_pypto;
using Op = ops::npu_compressor;

// The rows of state_cache, by sequence and position: kv, then scores. Making one checks the blocks
// of every row that the call reads or writes.
class State {
 public:
  State(const Op::Arguments& a, const Op::CallShape& s, const Batch& batch, const Sizes& sizes)
      : cache_(cache_of(Op::name, "state_cache", a.state_cache, CacheUse::written)),
        table_(*a.state_block_table),
        row_stride_(a.state_block_table->stride(0)),
        column_stride_(a.cache_mode == 1 ? a.state_block_table->stride(1) : 0),
        is_ring_(a.cache_mode == 2),
        sizes_(sizes) {
    const int64_t needed = sizes.tokens() + batch.longest - 1;
    check(!is_ring_ || batch.tokens == 0 || cache_.block_size >= needed, Op::name, "cu_seqlens",
          "must fit state_cache: in cache_mode 2 a sequence of ", batch.longest,
          " tokens needs blocks of at least coff * cmp_ratio + ", batch.longest, " - 1 = ", needed,
          " tokens, got ", cache_.block_size);
    for (std::size_t b = 0; b < batch.sequences.size(); ++b) {
      const Sequence& sequence = batch.sequences[b];
      if (sequence.count == 0) continue;
      const int64_t end = sequence.start + sequence.count;
      check(is_ring_ || (end - 1) / cache_.block_size < s.M, Op::name, "state_block_table",
            "holds positions below ", tokens_of(s.M, cache_.block_size), " (", s.M, " blocks of ",
            cache_.block_size, "), got a start_pos of ", sequence.start, " and ", sequence.count,
            " tokens for sequence ", b);
      const int64_t first = is_ring_ ? 0 : first_needed(sequence) / cache_.block_size;
      const int64_t last = is_ring_ ? 0 : (end - 1) / cache_.block_size;
      for (int64_t index = first; index <= last; ++index) {
        const int64_t block =
            table_[static_cast<int64_t>(b) * row_stride_ + index * column_stride_];
        check(block >= 0 && block < cache_.blocks, Op::name, "state_block_table",
              "must hold blocks from 0 to ", cache_.blocks - 1, ", got ", block, " for sequence ",
              b);
      }
    }
  }

  float* row(int64_t sequence, int64_t position) const {
    const int64_t token = position % cache_.block_size;
    return reinterpret_cast<float*>(cache_.row(block(sequence, position), token));
  }

  // Whether a new token is kept. Block 0 of a table of pages holds tokens that nobody needs. A ring
  // keeps the tokens from which later windows begin.
  bool keeps(int64_t index, const Sequence& sequence, int64_t position) const {
    if (!is_ring_) return block(index, position) != 0;
    const int64_t closed = (sequence.start + sequence.count) / sizes_.ratio;
    return position >= (closed - sizes_.parts + 1) * sizes_.ratio;
  }

 private:
  // The first position that the windows of a sequence's new tokens may read.
  int64_t first_needed(const Sequence& sequence) const {
    const int64_t window = sequence.start / sizes_.ratio;
    const bool closes = (sequence.start + sequence.count) / sizes_.ratio > window;
    return closes ? std::max<int64_t>(0, window - sizes_.parts + 1) * sizes_.ratio : sequence.start;
  }

  int64_t block(int64_t sequence, int64_t position) const {
    return table_[sequence * row_stride_ + position / cache_.block_size * column_stride_];
  }

  PagedCache cache_;
  Integers table_;
  int64_t row_stride_;
  int64_t column_stride_;
  bool is_ring_;
  Sizes sizes_;
};

// Of equal rows of the state, the last token's numbers stay.
void write_state(const State& state, const Batch& batch, const Sizes& sizes,
                 const Products& products) {
  const auto* kv = static_cast<const float*>(products.kv.const_data_ptr());
  const auto* scores = static_cast<const float*>(products.scores.const_data_ptr());
  const int64_t width = sizes.width();
  const int64_t grain = std::max<int64_t>(64, kUnitNumbers / std::max<int64_t>(1, batch.tokens));
  parallel_for(0, width, grain, [&](int64_t begin, int64_t end) {
    for (std::size_t b = 0; b < batch.sequences.size(); ++b) {
      const Sequence& sequence = batch.sequences[b];
      const auto index = static_cast<int64_t>(b);
      for (int64_t i = 0; i < sequence.count; ++i) {
        if (!state.keeps(index, sequence, sequence.start + i)) continue;
        float* const row = state.row(index, sequence.start + i);
        const int64_t at = (sequence.place + i) * width;
        std::copy(kv + at + begin, kv + at + end, row + begin);
        std::copy(scores + at + begin, scores + at + end, row + width + begin);
      }
    }
  });
}

}  // namespace

void compressor_cpu(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs& out) {
  const Sizes sizes{a.cmp_ratio, a.coff, s.C / a.coff};
  const Batch batch(Op::name, a.x, a.cu_seqlens, a.seqused, a.start_pos, sizes.ratio);
  const State state(a, s, batch, sizes);
  const Products products = project_tokens(a.x, a.wkv, a.wgate, a.ape, batch, sizes);
  const auto* kv = static_cast<const float*>(products.kv.const_data_ptr());
  const auto* scores = static_cast<const float*>(products.scores.const_data_ptr());
  const int64_t width = sizes.width();
  Tensor rows = out.cmp_kv;
  torch::stable::zero_(rows);
  // All of the state is read before any of it is written.
  compress_windows<float>(batch, sizes,
                          [&](int64_t index, int64_t position) -> Token<float> {
                            const Sequence& sequence =
                                batch.sequences[static_cast<std::size_t>(index)];
                            if (position < sequence.start) {
                              const float* const row = state.row(index, position);
                              return {row, row + width};
                            }
                            const int64_t at = (sequence.place + position - sequence.start) * width;
                            return {kv + at, scores + at};
                          },
                          {rows});
  write_state(state, batch, sizes, products);
}

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Op>().impl<&compressor_cpu>("CPU").impl<&compressor_npu>("PrivateUse1");
  plugin.def<ops::npu_compressor_train>().impl<&train_cpu>("CPU").impl<&train_npu>("PrivateUse1");
  plugin.def<ops::npu_compressor_backward>().impl<&backward_cpu>("CPU").impl<&backward_npu>(
      "PrivateUse1");
}

}  // namespace custom_pypto_compressor
