// npu_mhc_pre_backward, in two steps: token by token, then columns of phi over all tokens.
#pragma once

#include "pre.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_mhc::PreGradColumnsTask;
using custom_pypto_mhc::PreGradRowsTask;

template <class Element>
inline NumberOf<Element> dot(const Element* a, const Element* b, int64_t count) {
  VectorOf<Element> sum{};
  for_vectors<Element>(count, [&](int64_t i, auto how) CUSTOM_PYPTO_INLINE_LAMBDA {
    sum = multiply_add(get(a + i, how), get(b + i, how), sum);
  });
  return reduce_add(sum);
}

template <class Element>
void pre_grad_rows(const PreGradRowsTask& task) {
  using Number = NumberOf<Element>;
  const int64_t n = task.sizes.streams;
  const int64_t columns = task.sizes.columns;
  const int64_t rows = task.sizes.rows;
  const Number* const alpha = at<Number>(task.alpha, 0);
  for (int64_t token = task.first; token < task.first + task.count; ++token) {
    const Element* const x = at<Element>(task.x, token * n * columns);
    const Element* const grad_h_in = at<Element>(task.grad_h_in, token * columns);
    Number* const grad_bias = at<Number>(task.grad_bias, token * rows);
    for (int64_t i = 0; i < n; ++i) {
      const Number gate = *at<Number>(task.h_pre, token * n + i) - static_cast<Number>(task.hc_eps);
      const Number post = *at<Number>(task.h_post, token * n + i);
      grad_bias[i] = dot(grad_h_in, x + i * columns, columns) * gate * (1 - gate);
      grad_bias[n + i] = *at<Number>(task.grad_h_post, token * n + i) * post * (1 - post / 2);
    }
    for (int64_t row = 2 * n; row < rows; ++row) {
      grad_bias[row] = *at<Number>(task.grad_h_res, token * n * n + row - 2 * n);
    }
    const Number inv_rms = *at<Number>(task.inv_rms, token);
    Number* const grad_mix = at<Number>(task.grad_mix, token * rows);
    Number grad_inv_rms = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const Number grad = grad_bias[row] * alpha[row < 2 * n ? row / n : 2];
      grad_inv_rms += grad * *at<Number>(task.h_mix, token * rows + row);
      grad_mix[row] = grad * inv_rms;
    }
    *at<Number>(task.x_factor, token) =
        -grad_inv_rms * inv_rms * inv_rms * inv_rms / static_cast<Number>(task.sizes.depth);
  }
}

// The tokens [token, token + kTokens) of a task. Each sum over tokens adds them one by one.
template <class Element, int kTokens>
void add_tokens(const PreGradColumnsTask& task, int64_t token) {
  using Number = NumberOf<Element>;
  using Vector = VectorOf<Element>;
  const int64_t n = task.sizes.streams;
  const int64_t columns = task.sizes.columns;
  const int64_t depth = task.sizes.depth;
  const int64_t rows = task.sizes.rows;
  const int64_t begin = task.stream * columns + task.first;
  const Number* const grad_mix = at<Number>(task.grad_mix, token * rows);
  const Number* const x_factor = at<Number>(task.x_factor, token);
  const Number* const h_pre = at<Number>(task.h_pre, token * n + task.stream);
  for_vectors<Element>(task.count, [&](int64_t i, auto how) CUSTOM_PYPTO_INLINE_LAMBDA {
    const int64_t column = begin + i;
    const Vector gamma =
        task.gamma == nullptr ? spread(Number{1}) : get(at<Number>(task.gamma, column), how);
    Vector x[kTokens];
    Vector scaled[kTokens];
    Vector grad[kTokens];  // of x * gamma
    unroll<kTokens>([&](int t) CUSTOM_PYPTO_INLINE_LAMBDA {
      x[t] = get(at<Element>(task.x, (token + t) * depth + column), how);
      scaled[t] = multiply(x[t], gamma);
      grad[t] = Vector{};
    });
    for (int64_t row = 0; row < rows; ++row) {
      const Vector phi = get(at<Number>(task.phi, row * depth + column), how);
      Number* const to = at<Number>(task.grad_phi, row * depth + column);
      Vector grad_phi = get(static_cast<const Number*>(to), how);
      unroll<kTokens>([&](int t) CUSTOM_PYPTO_INLINE_LAMBDA {
        const Vector factor = spread(grad_mix[t * rows + row]);
        grad[t] = multiply_add(factor, phi, grad[t]);
        grad_phi = multiply_add(factor, scaled[t], grad_phi);
      });
      put(to, grad_phi, how);
    }
    Number* const to = at<Number>(task.grad_gamma, column);
    Vector grad_gamma = get(static_cast<const Number*>(to), how);
    unroll<kTokens>([&](int t) CUSTOM_PYPTO_INLINE_LAMBDA {
      grad_gamma = multiply_add(x[t], grad[t], grad_gamma);
      const Vector grad_h_in =
          get(at<Element>(task.grad_h_in, (token + t) * columns + task.first + i), how);
      Vector sum = multiply(spread(h_pre[t * n]), grad_h_in);
      sum = multiply_add(spread(x_factor[t]), x[t], sum);
      sum = multiply_add(gamma, grad[t], sum);
      const int64_t place = (token + t) * depth + column;
      if (task.grad_x_post != nullptr) {
        sum = add(sum, get(at<Element>(task.grad_x_post, place), how));
      }
      put(at<Element>(task.grad_x, place), sum, how);
    });
    if (task.gamma != nullptr) put(to, grad_gamma, how);
  });
}

template <class Element>
void pre_grad_columns(const PreGradColumnsTask& task) {
  using Number = NumberOf<Element>;
  const int64_t begin = task.stream * task.sizes.columns + task.first;
  for (int64_t i = 0; i < task.count; ++i) {
    for (int64_t row = 0; row < task.sizes.rows; ++row) {
      *at<Number>(task.grad_phi, row * task.sizes.depth + begin + i) = 0;
    }
    *at<Number>(task.grad_gamma, begin + i) = 0;
  }
  constexpr int kTogether = 4;
  int64_t token = 0;
  for (; token + kTogether <= task.sizes.tokens; token += kTogether) {
    add_tokens<Element, kTogether>(task, token);
  }
  for (; token < task.sizes.tokens; ++token) add_tokens<Element, 1>(task, token);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
