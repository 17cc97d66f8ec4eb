// The matrices of attention in its plain form: a token's keys and queries as dense numbers of one
// type. For fp64, which has no vector kernels, and for gradients.
#pragma once

#include <custom_pypto_blocks/projection.h>
#include <custom_pypto_blocks/scratch.h>

#include <algorithm>
#include <cstdint>

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
    constexpr auto kAlignment = static_cast<int64_t>(custom_pypto::kScratchAlignment);
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

// The kernel of products in fp32. Each plugin defines it.
const custom_pypto::cpu::MatmulKernel& fp32_matmul();

// out = a @ b. Each number of it is summed in an order that depends on the sizes alone.
inline void multiply(const Dense<float>& a, const Strided<float>& b, const Dense<float>& out) {
  if (out.count == 0 || out.columns == 0) return;
  custom_pypto::project_here(
      fp32_matmul(), {a.data, a.count, a.columns},
      custom_pypto::matrix_of(b.data, b.rows, b.columns, b.row_stride, b.column_stride),
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

}  // namespace custom_pypto_sparse_attention
