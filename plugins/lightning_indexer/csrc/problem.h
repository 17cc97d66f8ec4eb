// An op's arguments as what the schedule works on: sequences of rows and keys.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/indexer_kernels.h"
#include "ops.h"

namespace custom_pypto_lightning_indexer {

using namespace custom_pypto;

using ops::LayoutKey;
using ops::LayoutQuery;

// One call: the arguments that the ops share, and the scales of quantised queries and keys, or
// null.
struct Call {
  const char* op;
  ops::indexer::Arguments arguments;
  ops::indexer::CallShape sizes;
  const Tensor* query_scales = nullptr;
  const Tensor* key_scales = nullptr;
};

template <class Arguments, class CallShape>
Call make_call(const char* op, const Arguments& a, const CallShape& s) {
  return {op, ops::indexer::arguments(a), ops::indexer::call_shape(s)};
}

// One call of an op of the second version: its tensors, whose names differ, and what the ops share.
struct CallV2 {
  const char* op;
  const Tensor& query;
  const Tensor& key;
  const Tensor& weights;
  ops::indexer_v2::Arguments arguments;
  ops::indexer_v2::CallShape sizes;
  const Tensor* query_scales = nullptr;
  const Tensor* key_scales = nullptr;
};

// One sequence of the batch. `keys` and `key_scales` are its first key head; the next one is
// Problem::key_head_stride and key_scale_head_stride elements on.
struct Sequence {
  int64_t first_row;  // among all rows of the output
  int64_t rows;       // that hold queries
  int64_t tokens;     // keys
  int64_t residual;   // uncompressed tokens behind those that the keys were compressed from
  const char* query;  // of its first row and head
  const char* weights;
  const char* query_scales;
  Keys keys;
  Keys key_scales;
};

// Where the tokens of each sequence begin, among all tokens, and how many there are. Of keys that
// are not TND, `first` is not set.
struct Tokens {
  std::vector<int64_t> first;
  std::vector<int64_t> lengths;
};

// Rows are query tokens, in the order of the output. Strides are in elements.
struct Problem {
  int64_t rows;  // of the output, padding included
  int64_t key_heads;
  int64_t group;  // query heads of a key head
  int64_t sparse_count;
  bool causal;
  int64_t ratio;  // of compression: key i is of tokens [i * ratio, (i + 1) * ratio)
  int64_t query_row_stride;
  int64_t weights_row_stride;
  int64_t query_scale_row_stride;
  int64_t key_head_stride;
  int64_t key_scale_head_stride;
  Query query;  // strides, element types and heads; no data
  std::vector<Sequence> sequences;
  Tokens queries;
  Tokens keys;
  std::vector<int32_t> blocks;   // of all sequences; Keys::blocks points into it
  std::vector<int32_t> offsets;  // [rows, key heads]: what is added to positions; or empty

  // How many keys row `row` of `sequence` sees.
  int64_t visible(const Sequence& sequence, int64_t row) const {
    if (!causal) return sequence.tokens;
    const int64_t later = sequence.rows - 1 - row;
    const int64_t seen = ratio == 1 ? sequence.tokens - later
                                    : (sequence.tokens * ratio + sequence.residual - later) / ratio;
    return seen > 0 ? seen : 0;
  }
};

// Fill `lengths` with the number of queries, or keys, of each sequence. Throw as read_problem does.
void read_query_lengths(const Call& call, std::vector<int64_t>& lengths);
void read_key_lengths(const Call& call, std::vector<int64_t>& lengths);

// Fills `problem`, whose vectors keep their memory from call to call. Throws std::runtime_error,
// naming the argument and its value, for lengths and blocks that the op does not take.
void read_problem(const Call& call, Problem& problem);
void read_problem(const CallV2& call, Problem& problem);

}  // namespace custom_pypto_lightning_indexer
