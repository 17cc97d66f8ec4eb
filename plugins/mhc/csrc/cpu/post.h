// npu_mhc_post and its gradients, of tokens with kStreams streams.
#pragma once

#include "mhc_kernels.h"
#include "wide.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_mhc::PostCall;
using custom_pypto_mhc::PostGradCall;
using custom_pypto_mhc::Range;

template <class Element, int kStreams>
void post(const PostCall& call, Range tokens) {
  using Number = NumberOf<Element>;
  using Vector = VectorOf<Element>;
  const int64_t columns = call.sizes.columns;
  for (int64_t token = tokens.first; token < tokens.first + tokens.count; ++token) {
    const Element* const x = at<Element>(call.x, token * kStreams * columns);
    const Element* const h_out = at<Element>(call.h_out, token * columns);
    const Number* const h_post = at<Number>(call.h_post, token * kStreams);
    const Number* const h_res =
        call.h_res == nullptr ? nullptr : at<Number>(call.h_res, token * kStreams * kStreams);
    Element* const y = at<Element>(call.y, token * kStreams * columns);
    for_vectors<Element>(columns, [&](int64_t i, auto how) CUSTOM_PYPTO_INLINE_LAMBDA {
      const Vector of_layer = get(h_out + i, how);
      Vector streams[kStreams];
      unroll<kStreams>([&](int from) CUSTOM_PYPTO_INLINE_LAMBDA {
        streams[from] = get(x + from * columns + i, how);
      });
      unroll<kStreams>([&](int to) CUSTOM_PYPTO_INLINE_LAMBDA {
        Vector sum = multiply(spread(h_post[to]), of_layer);
        if (h_res == nullptr) {
          sum = add(streams[to], sum);
        } else {
          unroll<kStreams>([&](int from) CUSTOM_PYPTO_INLINE_LAMBDA {
            sum = multiply_add(spread(h_res[from * kStreams + to]), streams[from], sum);
          });
        }
        put(y + to * columns + i, sum, how);
      });
    });
  }
}

template <class Element, int kStreams>
void post_grad(const PostGradCall& call, Range tokens) {
  using Number = NumberOf<Element>;
  using Vector = VectorOf<Element>;
  const int64_t columns = call.of.sizes.columns;
  for (int64_t token = tokens.first; token < tokens.first + tokens.count; ++token) {
    const Element* const grad_y = at<Element>(call.grad_y, token * kStreams * columns);
    const Element* const h_out = at<Element>(call.of.h_out, token * columns);
    const Number* const h_post = at<Number>(call.of.h_post, token * kStreams);
    Element* const grad_h_out = at<Element>(call.grad_h_out, token * columns);
    Vector sums[kStreams];
    const auto clear = [&] {
      unroll<kStreams>([&](int to) CUSTOM_PYPTO_INLINE_LAMBDA { sums[to] = Vector{}; });
    };
    clear();
    for_vectors<Element>(columns, [&](int64_t i, auto how) CUSTOM_PYPTO_INLINE_LAMBDA {
      const Vector of_layer = get(h_out + i, how);
      Vector grad{};
      unroll<kStreams>([&](int to) CUSTOM_PYPTO_INLINE_LAMBDA {
        const Vector of_y = get(grad_y + to * columns + i, how);
        grad = multiply_add(spread(h_post[to]), of_y, grad);
        sums[to] = multiply_add(of_layer, of_y, sums[to]);
      });
      put(grad_h_out + i, grad, how);
    });
    for (int to = 0; to < kStreams; ++to) {
      *at<Number>(call.grad_h_post, token * kStreams + to) = reduce_add(sums[to]);
    }
    for (int64_t from = 0; from < kStreams; ++from) {
      const int64_t place = (token * kStreams + from) * columns;
      const int64_t row = (token * kStreams + from) * kStreams;
      const Element* const x = at<Element>(call.of.x, place);
      Element* const grad_x = at<Element>(call.grad_x, place);
      const Number* const h_res =
          call.of.h_res == nullptr ? nullptr : at<Number>(call.of.h_res, row);
      clear();
      for_vectors<Element>(columns, [&](int64_t i, auto how) CUSTOM_PYPTO_INLINE_LAMBDA {
        const Vector of_x = get(x + i, how);
        Vector grad{};
        unroll<kStreams>([&](int to) CUSTOM_PYPTO_INLINE_LAMBDA {
          const Vector of_y = get(grad_y + to * columns + i, how);
          if (h_res != nullptr) grad = multiply_add(spread(h_res[to]), of_y, grad);
          sums[to] = multiply_add(of_x, of_y, sums[to]);
        });
        if (h_res == nullptr) grad = get(grad_y + from * columns + i, how);
        put(grad_x + i, grad, how);
      });
      for (int to = 0; to < kStreams; ++to) {
        *at<Number>(call.grad_h_res, row + to) = reduce_add(sums[to]);
      }
    }
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
