// npu_advance_step_flashattn on AI cores: in integers, on their scalar units.
#include "adv_step_flash.h"

#include "kernel_operator.h"

namespace {

// Rows that cores divide among them in whole: in these, no two write to one line of 64 bytes.
constexpr int64_t kRowsOfLine = 16;

// A tensor of int32 or int64.
class Integers {
 public:
  __aicore__ inline Integers(GM_ADDR data, int64_t count, bool is_wide) : is_wide_(is_wide) {
    wide_.SetGlobalBuffer((__gm__ int64_t*)data, count);
    narrow_.SetGlobalBuffer((__gm__ int32_t*)data, count);
  }

  __aicore__ inline int64_t Get(int64_t index) {
    return is_wide_ ? wide_.GetValue(index) : narrow_.GetValue(index);
  }

  __aicore__ inline void Set(int64_t index, int64_t value) {
    if (is_wide_) {
      wide_.SetValue(index, value);
    } else {
      narrow_.SetValue(index, (int32_t)value);
    }
  }

  // Writes back what this core wrote, of any tensor.
  __aicore__ inline void Flush() {
    AscendC::DataCacheCleanAndInvalid<int64_t, AscendC::CacheLine::ENTIRE_DATA_CACHE,
                                      AscendC::DcciDst::CACHELINE_OUT>(wide_);
  }

 private:
  AscendC::GlobalTensor<int64_t> wide_;
  AscendC::GlobalTensor<int32_t> narrow_;
  bool is_wide_;
};

}  // namespace

extern "C" __global__ __aicore__ void adv_step_flash_kernel(
    GM_ADDR input_tokens, GM_ADDR sampled_token_ids, GM_ADDR input_positions, GM_ADDR seq_lens,
    GM_ADDR slot_mapping, GM_ADDR block_tables, int64_t num_seqs, int64_t num_queries,
    int64_t block_size, int64_t columns, int64_t table_stride, int64_t wide) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  Integers tokens(input_tokens, num_seqs, wide & 1);
  Integers sampled(sampled_token_ids, num_queries, wide & 2);
  Integers positions(input_positions, num_seqs, wide & 4);
  Integers lengths(seq_lens, num_seqs, wide & 8);
  Integers slots(slot_mapping, num_seqs, wide & 16);
  Integers table(block_tables, (num_seqs - 1) * table_stride + columns, wide & 32);

  const int64_t lines = (num_seqs + kRowsOfLine - 1) / kRowsOfLine;
  const int64_t cores = AscendC::GetBlockNum();
  const int64_t rows = (lines + cores - 1) / cores * kRowsOfLine;
  const int64_t first = AscendC::GetBlockIdx() * rows;
  const int64_t end = first + rows < num_seqs ? first + rows : num_seqs;
  for (int64_t row = first; row < end; ++row) {
    if (row >= num_queries) {
      tokens.Set(row, 0);
      positions.Set(row, 0);
      slots.Set(row, -1);
      continue;
    }
    const int64_t position = lengths.Get(row);
    // A position that the CPU refuses gets no slot: nothing outside the table may be read.
    int64_t slot = -1;
    if (position >= 0 && position / block_size < columns) {
      const int64_t block = table.Get(row * table_stride + position / block_size);
      if (block >= 0) slot = block * block_size + position % block_size;
    }
    tokens.Set(row, sampled.Get(row));
    positions.Set(row, position);
    lengths.Set(row, position + 1);
    slots.Set(row, slot);
  }
  slots.Flush();
}

void adv_step_flash(uint32_t blocks, void* l2ctrl, void* stream, uint8_t* input_tokens,
                    uint8_t* sampled_token_ids, uint8_t* input_positions, uint8_t* seq_lens,
                    uint8_t* slot_mapping, uint8_t* block_tables, int64_t num_seqs,
                    int64_t num_queries, int64_t block_size, int64_t columns, int64_t table_stride,
                    int64_t wide) {
  adv_step_flash_kernel<<<blocks, l2ctrl, stream>>>(
      input_tokens, sampled_token_ids, input_positions, seq_lens, slot_mapping, block_tables,
      num_seqs, num_queries, block_size, columns, table_stride, wide);
}
