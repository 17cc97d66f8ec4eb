// Weights and the products with them.
#pragma once

#include "common.h"

namespace custom_pypto_sparse_attention {

// A weight [depth, columns], read where it is: a matrix with any strides is one tile, a weight in
// fractal NZ order has tiles of 16 columns. Strides count elements; see MatmulTask.
struct Weight {
  const void* data;
  int64_t depth;
  int64_t columns;
  int64_t row_stride;
  int64_t column_stride;
  int64_t tile_columns;
  int64_t tile_stride;
};

// Of a matrix [depth, columns], which may be declared to hold fractal NZ bytes, or of that order
// [columns / 16, depth, 16].
Weight weight_of(const Tensor& weight);

// One matrix of a contiguous or strided batch [batch, depth, columns].
Weight weight_of_batch(const Tensor& batch, int64_t index);

// Rows of activations: `count` rows, `stride` elements apart.
template <class Data>
struct RowsOf {
  Data* data;
  int64_t count;
  int64_t stride;
};
using Rows = RowsOf<void>;
using ConstRows = RowsOf<const void>;
inline ConstRows as_const(const Rows& rows) { return {rows.data, rows.count, rows.stride}; }

// out = x @ weight, accumulated in fp32, rounded to `element` (fp32 when `to_fp32`). In parallel;
// the same bits for any number of threads.
void project(Element element, const ConstRows& x, const Weight& weight, const Rows& out,
             bool to_fp32 = false);

// For each n of `batch` [N, depth, columns]: out[:, n] = x[:, n] @ batch[n], where element n of a
// row of x (or out) begins n * x_batch_stride (n * out_batch_stride) elements into it.
void project_batch(Element element, const ConstRows& x, int64_t x_batch_stride, const Tensor& batch,
                   const Rows& out, int64_t out_batch_stride);

}  // namespace custom_pypto_sparse_attention
