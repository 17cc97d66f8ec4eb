// The launcher of the kernel in adv_step_flash.cpp.
#pragma once

#include <cstdint>

// Tensors are of int64 where their bit in `wide` is set, in the order of the parameters, else of
// int32; all are contiguous, except that rows of block_tables are `table_stride` elements apart.
extern "C" void adv_step_flash(uint32_t blocks, void* l2ctrl, void* stream, uint8_t* input_tokens,
                               uint8_t* sampled_token_ids, uint8_t* input_positions,
                               uint8_t* seq_lens, uint8_t* slot_mapping, uint8_t* block_tables,
                               int64_t num_seqs, int64_t num_queries, int64_t block_size,
                               int64_t columns, int64_t table_stride, int64_t wide);
