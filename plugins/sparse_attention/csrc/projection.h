// Weights and the products with them.
#pragma once

#include "common.h"

namespace custom_pypto_sparse_attention {

// Columns of a tile in fractal NZ order.
inline constexpr int64_t kFractalLanes = 16;

// A weight [depth, columns], read where it is. Strides count elements; see MatmulTask.
struct Weight {
  const void* data;
  int64_t depth;
  int64_t columns;
  int64_t row_stride;
  int64_t column_stride;
  int64_t group;
  int64_t group_stride;
};

// Whether the tensor is a matrix whose bytes are declared to be in fractal NZ order. One that
// torch_npu keeps in that order by itself is not: its declaration is torch_npu's.
bool is_declared_nz(const Tensor& weight);

// Checks a weight of `depth` rows: a plain matrix [depth, columns], or, of a 16-bit dtype, its
// fractal NZ order: [columns / 16, depth, 16], or [depth, columns] if that is declared.
Weight check_weight(const Arg& weight, const Arg& x, int64_t depth, const char* meaning);

// Checks that a weight has `columns` columns; `meaning` says what they are.
void check_columns(const Arg& argument, const Weight& weight, int64_t columns, const char* meaning);

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
