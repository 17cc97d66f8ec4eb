// The CPU kernels of the hyper-connections, compiled for each instruction set.
//
// Tensors are contiguous. "Numbers" are fp32, or float64 where x is float64; all that is not of x's
// dtype is numbers. Pointers are to numbers unless a comment says "of x's dtype".
#pragma once

#include <custom_pypto/cpu/kernel_table.h>
#include <stdint.h>

namespace custom_pypto_mhc {

struct Sizes {
  int64_t tokens;
  int64_t streams;
  int64_t columns;
  int64_t depth;  // streams * columns
  int64_t rows;   // of phi
};

// [first, first + count).
struct Range {
  int64_t first;
  int64_t count;
};

// Tokens that share a block of phi, and its columns.
inline constexpr int64_t kMixTokens = 16;
inline constexpr int64_t kMixDepth = 512;

// A call of npu_mhc_pre. h_mix, inv_rms, h_pre and h_post are arguments of its gradient.
struct PreCall {
  Sizes sizes;
  const void* x;      // [tokens, streams, columns], of x's dtype
  const void* phi;    // [rows, depth]
  const void* gamma;  // [depth], or null
  const void* alpha;  // [3], or [2] without h_res
  double hc_eps;
  void* h_mix;    // [tokens, rows]
  void* inv_rms;  // [tokens]
  void* h_pre;    // [tokens, streams], or null
  void* h_post;   // [tokens, streams]
  // The gradient has none of these.
  const void* bias;  // [rows]
  double norm_eps;
  bool is_hf32;  // x * gamma is rounded to HF32
  void* h_res;   // [tokens, streams, streams]
  void* h_in;    // [tokens, columns], of x's dtype
};

struct PreGradCall {
  PreCall of;
  const void* grad_h_in;  // of x's dtype
  const void* grad_h_post;
  const void* grad_h_res;
  const void* grad_x_post;  // [tokens, streams, columns], of x's dtype, or null
  void* grad_bias;          // [tokens, rows]: each token's part
  void* grad_mix;           // [tokens, rows]: the gradient of h_mix
  void* x_factor;           // [tokens]: what inv_rms adds to the gradient of x, as a multiple of x
  void* grad_x;             // of x's dtype
  void* grad_phi;
  void* grad_gamma;
};

struct PostCall {
  Sizes sizes;
  const void* x;      // of x's dtype
  const void* h_res;  // [tokens, streams, streams], or null
  const void* h_out;  // [tokens, columns], of x's dtype
  const void* h_post;
  void* y;  // of x's dtype; the gradient has none
};

struct PostGradCall {
  PostCall of;
  const void* grad_y;  // of x's dtype
  void* grad_x;        // of x's dtype
  void* grad_h_res;
  void* grad_h_out;  // of x's dtype
  void* grad_h_post;
};

// Matrices [tokens, n, n] of one tile. norm: [2 * iterations, n, tokens, 8], filled up with zeros.
// sum: for each iteration the sums of rows [8, tokens], filled up with ones, then of columns
// [tokens, 8], filled up with zeros. The first sums of rows are ones.
struct SinkhornTask {
  int64_t tokens;
  int64_t iterations;
  double eps;
  const void* x;  // or the gradient of y
  void* y;        // or the gradient of x
  void* norm;     // or null
  void* sum;
};

// The kernels of one dtype of x, and of n = 4, 6, 8 streams.
struct Kernels {
  // Rows of h_mix of at most kMixTokens tokens; with the first row inv_rms too. `scratch` has
  // kMixTokens * kMixDepth numbers.
  void (*mix)(const PreCall& call, Range tokens, Range rows, void* scratch);
  void (*pre)(const PreCall& call, Range tokens);  // after mix
  void (*pre_grad_tokens)(const PreGradCall& call, Range tokens);
  // The gradients of some columns of one stream, over all tokens; after pre_grad_tokens.
  void (*pre_grad_columns)(const PreGradCall& call, int64_t stream, Range columns);
  void (*post[3])(const PostCall& call, Range tokens);
  void (*post_grad[3])(const PostGradCall& call, Range tokens);
};

struct KernelTable {
  Kernels of_dtype[4];  // fp32, fp16, bf16, the order of Element; then float64
  // Of fp32, and of float64.
  void (*sinkhorn[2][3])(const SinkhornTask& task);
  void (*sinkhorn_grad[2][3])(const SinkhornTask& task);
  // to[i] = from[i] rounded to HF32, which has 10 bits of mantissa; half is rounded away from 0.
  void (*round_to_hf32)(const float* from, int64_t count, float* to);
};

CUSTOM_PYPTO_KERNELS(KernelTable, kernels)

}  // namespace custom_pypto_mhc
