// Attention of one query token to the keys of a list, in steps: what the kernels take, and their
// table. Plugins compile the kernels, cpu/attend.h, for each instruction set.
#pragma once

#include <custom_pypto/abi.h>
#include <stdint.h>

namespace custom_pypto_sparse_attention {

// Attention of some heads of one query token to `count` >= 1 keys. A key's row is latent | rope,
// in two places; its value is the latent part. Strides count elements, rows are contiguous.
struct AttendTask {
  int64_t heads;
  int64_t latent;
  int64_t rope;
  const void* query;  // [heads, latent]
  int64_t query_head_stride;
  const void* query_rope;  // [heads, rope]
  int64_t query_rope_head_stride;
  const void* const* latent_rows;  // `count` pointers
  const void* const* rope_rows;    // `count` pointers
  int64_t count;
  float scale;
  void* out;  // [heads, latent]
  int64_t out_head_stride;
  float* log_sum_exp;  // [heads], or null
  const float* sinks;  // [heads], or null: a score of each head that has no value
};

// Keys of one range of a row, more in rows that would have too many ranges. The ranges of a row are
// merged in order, whether one thread or several compute them.
inline constexpr int64_t kRangeKeys = 512;
// Most ranges of a row: each has sums of its own while threads share the row.
inline constexpr int64_t kMostRanges = 48;
constexpr int64_t attend_ranges(int64_t count) {
  const int64_t ranges = (count + kRangeKeys - 1) / kRangeKeys;
  return ranges < kMostRanges ? ranges : kMostRanges;
}

// Attention in steps, for one dtype: scratch is prepared for a task, each range gives a partial
// result, partial results are merged in the order of the ranges, and the result is written. Scratch
// and partial results are aligned as Scratch of custom_pypto_blocks/scratch.h is.
struct AttendKernels {
  void (*start)(const AttendTask& task, char* scratch);
  void (*run_range)(const AttendTask& task, int64_t range, char* partial, char* scratch);
  void (*merge)(const AttendTask& task, char* partial, char* next);
  void (*write)(const AttendTask& task, char* partial);
  int64_t (*scratch_bytes)(int64_t heads, int64_t latent, int64_t rope);
  int64_t (*partial_bytes)(int64_t heads, int64_t latent);
};

}  // namespace custom_pypto_sparse_attention
