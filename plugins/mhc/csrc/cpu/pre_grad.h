// npu_mhc_pre_backward, in two steps: token by token, then columns of phi over all tokens.
#pragma once

#include "pre.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_mhc::PreGradCall;

template <class Element>
inline NumberOf<Element> dot(const Element* a, const Element* b, int64_t count) {
  VectorOf<Element> sum{};
  for_vectors<Element>(count, [&](int64_t i, auto how) CUSTOM_PYPTO_INLINE_LAMBDA {
    sum = multiply_add(get(a + i, how), get(b + i, how), sum);
  });
  return reduce_add(sum);
}

template <class Element>
void pre_grad_tokens(const PreGradCall& call, Range tokens) {
  using Number = NumberOf<Element>;
  const int64_t n = call.of.sizes.streams;
  const int64_t columns = call.of.sizes.columns;
  const int64_t rows = call.of.sizes.rows;
  const Number* const alpha = at<Number>(call.of.alpha, 0);
  for (int64_t token = tokens.first; token < tokens.first + tokens.count; ++token) {
    const Element* const x = at<Element>(call.of.x, token * n * columns);
    const Element* const grad_h_in = at<Element>(call.grad_h_in, token * columns);
    Number* const grad_bias = at<Number>(call.grad_bias, token * rows);
    for (int64_t i = 0; i < n; ++i) {
      const Number gate =
          *at<Number>(call.of.h_pre, token * n + i) - static_cast<Number>(call.of.hc_eps);
      const Number post = *at<Number>(call.of.h_post, token * n + i);
      grad_bias[i] = dot(grad_h_in, x + i * columns, columns) * gate * (1 - gate);
      grad_bias[n + i] = *at<Number>(call.grad_h_post, token * n + i) * post * (1 - post / 2);
    }
    for (int64_t row = 2 * n; row < rows; ++row) {
      grad_bias[row] = *at<Number>(call.grad_h_res, token * n * n + row - 2 * n);
    }
    const Number inv_rms = *at<Number>(call.of.inv_rms, token);
    Number* const grad_mix = at<Number>(call.grad_mix, token * rows);
    Number grad_inv_rms = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const Number grad = grad_bias[row] * alpha[row < 2 * n ? row / n : 2];
      grad_inv_rms += grad * *at<Number>(call.of.h_mix, token * rows + row);
      grad_mix[row] = grad * inv_rms;
    }
    *at<Number>(call.x_factor, token) =
        -grad_inv_rms * inv_rms * inv_rms * inv_rms / static_cast<Number>(call.of.sizes.depth);
  }
}

// The tokens [token, token + kTokens). Each sum over tokens adds them one by one.
template <class Element, int kTokens>
void add_tokens(const PreGradCall& call, int64_t stream, Range range, int64_t token) {
  using Number = NumberOf<Element>;
  using Vector = VectorOf<Element>;
  const int64_t n = call.of.sizes.streams;
  const int64_t columns = call.of.sizes.columns;
  const int64_t depth = call.of.sizes.depth;
  const int64_t rows = call.of.sizes.rows;
  const int64_t begin = stream * columns + range.first;
  const Number* const grad_mix = at<Number>(call.grad_mix, token * rows);
  const Number* const x_factor = at<Number>(call.x_factor, token);
  const Number* const h_pre = at<Number>(call.of.h_pre, token * n + stream);
  for_vectors<Element>(range.count, [&](int64_t i, auto how) CUSTOM_PYPTO_INLINE_LAMBDA {
    const int64_t column = begin + i;
    const Vector gamma =
        call.of.gamma == nullptr ? spread(Number{1}) : get(at<Number>(call.of.gamma, column), how);
    Vector x[kTokens];
    Vector scaled[kTokens];
    Vector grad[kTokens];  // of x * gamma
    unroll<kTokens>([&](int t) CUSTOM_PYPTO_INLINE_LAMBDA {
      x[t] = get(at<Element>(call.of.x, (token + t) * depth + column), how);
      scaled[t] = multiply(x[t], gamma);
      grad[t] = Vector{};
    });
    for (int64_t row = 0; row < rows; ++row) {
      const Vector phi = get(at<Number>(call.of.phi, row * depth + column), how);
      Number* const to = at<Number>(call.grad_phi, row * depth + column);
      Vector grad_phi = get(static_cast<const Number*>(to), how);
      unroll<kTokens>([&](int t) CUSTOM_PYPTO_INLINE_LAMBDA {
        const Vector factor = spread(grad_mix[t * rows + row]);
        grad[t] = multiply_add(factor, phi, grad[t]);
        grad_phi = multiply_add(factor, scaled[t], grad_phi);
      });
      put(to, grad_phi, how);
    }
    Number* const to = at<Number>(call.grad_gamma, column);
    Vector grad_gamma = get(static_cast<const Number*>(to), how);
    unroll<kTokens>([&](int t) CUSTOM_PYPTO_INLINE_LAMBDA {
      grad_gamma = multiply_add(x[t], grad[t], grad_gamma);
      const Vector grad_h_in =
          get(at<Element>(call.grad_h_in, (token + t) * columns + range.first + i), how);
      Vector sum = multiply(spread(h_pre[t * n]), grad_h_in);
      sum = multiply_add(spread(x_factor[t]), x[t], sum);
      sum = multiply_add(gamma, grad[t], sum);
      const int64_t place = (token + t) * depth + column;
      if (call.grad_x_post != nullptr) {
        sum = add(sum, get(at<Element>(call.grad_x_post, place), how));
      }
      put(at<Element>(call.grad_x, place), sum, how);
    });
    if (call.of.gamma != nullptr) put(to, grad_gamma, how);
  });
}

template <class Element>
void pre_grad_columns(const PreGradCall& call, int64_t stream, Range range) {
  using Number = NumberOf<Element>;
  const int64_t begin = stream * call.of.sizes.columns + range.first;
  const auto clear = [&](void* data, int64_t place) {
    for (int64_t i = 0; i < range.count; ++i) *at<Number>(data, place + i) = 0;
  };
  for (int64_t row = 0; row < call.of.sizes.rows; ++row) {
    clear(call.grad_phi, row * call.of.sizes.depth + begin);
  }
  clear(call.grad_gamma, begin);
  constexpr int kTogether = 4;
  int64_t token = 0;
  for (; token + kTogether <= call.of.sizes.tokens; token += kTogether) {
    add_tokens<Element, kTogether>(call, stream, range, token);
  }
  for (; token < call.of.sizes.tokens; ++token) add_tokens<Element, 1>(call, stream, range, token);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
