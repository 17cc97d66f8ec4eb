// The kernels of the ops, compiled for each instruction set. kernels(), and int8_kernels() for
// int8 queries and keys, return the kernels that this process uses.
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <custom_pypto_blocks/cpu/element.h>
#include <stdint.h>

namespace custom_pypto_lightning_indexer {

using custom_pypto::bytes_of;
using custom_pypto::Element;

// The keys of one sequence for one key head, or their scales. Strides are in elements.
struct Keys {
  const char* data;       // element 0 of token 0; when paged, of token 0 of block 0
  const int32_t* blocks;  // when paged, the block of tokens [i * block_size, ...); else null
  int64_t block_size;     // when paged
  int64_t block_stride;   // when paged
  int64_t token_stride;
  int64_t stride;
  int64_t depth;  // elements of a key
  Element element;
};

// The query heads of one row for one key head, and their weights. Strides are in elements.
struct Query {
  const char* data;
  int64_t head_stride;
  int64_t stride;
  const char* weights;
  int64_t weight_stride;
  int64_t heads;
  Element element;
  Element weight_element;
  // For queries of 8 bits, a scale for each head.
  const char* scales;
  int64_t scale_stride;
  Element scale_element;
};

// A task of `score`: some rows against tokens [first, last) of one sequence.
struct ScoreRange {
  const Keys* keys;
  int64_t heads;
  const char* packed;      // the rows, as `pack` wrote them, contiguous
  const int64_t* visible;  // row r sees tokens below visible[r]; ascending
  int64_t rows;
  int64_t first;  // a multiple of kTokenBlock
  int64_t last;   // at most the last `visible`
  // ranks + r * ranks_stride + token. Written up to the next multiple of kTokenBlock.
  int32_t* ranks;
  int64_t ranks_stride;
  char* scratch;       // score_scratch_bytes
  const Keys* scales;  // of keys of 8 bits: one number for each, so depth is 1
};

// Ranges of tokens begin at multiples of this.
inline constexpr int64_t kTokenBlock = 96;
// Every pointer to scratch, packed rows and ranks has this alignment.
inline constexpr int64_t kAlignment = 64;

// A rank is an int32 in the order of the scores: a higher score has a higher rank, equal scores (-0
// and 0 too) have equal ranks, NaN has the lowest.
struct ScoreKernels {
  // Bytes that one packed row takes, a multiple of kAlignment.
  int64_t (*packed_row_bytes)(const Keys& keys, int64_t heads);
  // Packs one row for keys of this kind.
  void (*pack)(const Keys& keys, const Query& query, char* packed);
  // Bytes of scratch that `score` needs, a multiple of kAlignment.
  int64_t (*score_scratch_bytes)(const Keys& keys);
  void (*score)(const ScoreRange& range);
};
struct SelectKernels {
  // Bytes of scratch that `select` needs for up to `count` ranks, a multiple of kAlignment.
  int64_t (*select_scratch_bytes)(int64_t count);
  // Writes the positions of the `limit` highest of ranks[0 .. count) to `out`, highest first, equal
  // ranks by position, then -1 up to `limit`.
  void (*select)(const int32_t* ranks, int64_t count, int64_t limit, char* scratch, int32_t* out);
};

struct Kernels : ScoreKernels, SelectKernels {};

CUSTOM_PYPTO_BF16_KERNELS(Kernels, kernels)
CUSTOM_PYPTO_INT8_KERNELS(ScoreKernels, int8_kernels)

}  // namespace custom_pypto_lightning_indexer
