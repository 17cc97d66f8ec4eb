// The queries and keys of attention in its plain form, each with its rotated part behind it.
#pragma once

#include <custom_pypto_sparse_attention/dense.h>

#include "selection.h"

namespace custom_pypto_sparse_attention {

// Rows of two arrays side by side.
template <class T, class Real>
void widen(const T* left, int64_t left_columns, const T* right, const Dense<Real>& to) {
  const int64_t right_columns = to.columns - left_columns;
  for (int64_t i = 0; i < to.count; ++i) {
    widen(left + i * left_columns, left_columns, to.row(i));
    widen(right + i * right_columns, right_columns, to.row(i) + left_columns);
  }
}

}  // namespace custom_pypto_sparse_attention
