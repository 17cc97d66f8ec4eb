// The matrices of attention in its plain form: a token's keys and queries as dense numbers of one
// type. For fp64, which has no vector kernels, and for gradients.
#pragma once

#include <custom_pypto_blocks/scratch.h>

#include <algorithm>

#include "selection.h"
#include "weight_order.h"

namespace custom_pypto_sparse_attention {

// `count` rows of `columns` numbers, one after the other.
template <class Real>
struct Dense {
  Real* data;
  int64_t count;
  int64_t columns;

  Real* row(int64_t index) const { return data + index * columns; }
};

// A matrix that is read column by column too. Strides count elements.
template <class Real>
struct Strided {
  const Real* data;
  int64_t rows;
  int64_t columns;
  int64_t row_stride;
  int64_t column_stride;
};

template <class Real>
Strided<Real> plain(const Dense<Real>& matrix) {
  return {matrix.data, matrix.count, matrix.columns, matrix.columns, 1};
}
template <class Real>
Strided<Real> transposed(const Dense<Real>& matrix) {
  return {matrix.data, matrix.columns, matrix.count, 1, matrix.columns};
}

// Allocates arrays in memory, one after the other. Without memory it counts their bytes.
class Arena {
 public:
  explicit Arena(char* memory) : memory_(memory) {}

  template <class Real>
  Dense<Real> allocate(int64_t count, int64_t columns) {
    constexpr auto kAlignment = static_cast<int64_t>(kScratchAlignment);
    Real* const data = memory_ == nullptr ? nullptr : reinterpret_cast<Real*>(memory_ + used_);
    used_ += (count * columns * static_cast<int64_t>(sizeof(Real)) + kAlignment - 1) / kAlignment *
             kAlignment;
    return {data, count, columns};
  }
  int64_t used() const { return used_; }

 private:
  char* memory_;
  int64_t used_ = 0;
};

// out = a @ b. Each number of it is summed in an order that depends on the sizes alone.
inline void multiply(const Dense<float>& a, const Strided<float>& b, const Dense<float>& out) {
  if (out.count == 0 || out.columns == 0) return;
  project_here(matmul(Element::fp32), {a.data, a.count, a.columns},
               matrix_of(b.data, b.rows, b.columns, b.row_stride, b.column_stride),
               {out.data, out.count, out.columns});
}

inline void multiply(const Dense<double>& a, const Strided<double>& b, const Dense<double>& out) {
  for (int64_t i = 0; i < out.count; ++i) {
    double* to = out.row(i);
    std::fill_n(to, out.columns, 0.0);
    for (int64_t k = 0; k < a.columns; ++k) {
      const double factor = a.row(i)[k];
      const double* from = b.data + k * b.row_stride;
      for (int64_t j = 0; j < out.columns; ++j) to[j] += factor * from[j * b.column_stride];
    }
  }
}

// The numbers of `count` elements from `from` on.
template <class T, class Real>
void widen(const T* from, int64_t count, Real* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Real>(from[i]);
}

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
