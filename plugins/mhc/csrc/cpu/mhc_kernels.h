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

// Tokens that share a block of phi.
inline constexpr int64_t kMixTokens = 16;
// Columns of phi and x that are multiplied at a time.
inline constexpr int64_t kMixDepth = 512;

// The products of x's rows with rows of phi, of the tokens [first, first + count).
struct MixTask {
  Sizes sizes;
  const void* x;      // [tokens, depth], of x's dtype
  const void* phi;    // [rows, depth]
  const void* gamma;  // [depth], or null
  bool is_hf32;       // round x * gamma to HF32
  double norm_eps;
  int64_t first;
  int64_t count;  // at most kMixTokens
  int64_t first_row;
  int64_t row_count;
  void* scratch;  // [kMixTokens, kMixDepth]
  void* h_mix;    // [tokens, rows]
  void* inv_rms;  // [tokens]; written with first_row 0 only
};

// The coefficients and h_in of the tokens [first, first + count), from h_mix and inv_rms.
struct PreTask {
  Sizes sizes;
  const void* x;        // [tokens, streams, columns], of x's dtype
  const void* alpha;    // [3], or [2] without h_res
  const void* bias;     // [rows]
  const void* h_mix;    // [tokens, rows]
  const void* inv_rms;  // [tokens]
  double hc_eps;
  int64_t first;
  int64_t count;
  void* h_in;    // [tokens, columns], of x's dtype
  void* h_post;  // [tokens, streams]
  void* h_res;   // [tokens, streams, streams]
  void* h_pre;   // [tokens, streams], or null
};

// The gradients of what each token has of its own, of the tokens [first, first + count).
struct PreGradRowsTask {
  Sizes sizes;
  const void* x;  // of x's dtype
  const void* alpha;
  const void* grad_h_in;    // [tokens, columns], of x's dtype
  const void* grad_h_post;  // [tokens, streams]
  const void* grad_h_res;   // [tokens, streams, streams]
  const void* inv_rms;
  const void* h_mix;
  const void* h_pre;
  const void* h_post;
  double hc_eps;
  int64_t first;
  int64_t count;
  void* grad_bias;  // [tokens, rows]: each token's part of bias's gradient
  void* grad_mix;   // [tokens, rows]: the gradient of h_mix
  void* x_factor;   // [tokens]: what inv_rms adds to the gradient of x, as a multiple of x
};

// The gradients of the columns [first, first + count) of one stream, over all tokens.
struct PreGradColumnsTask {
  Sizes sizes;
  const void* x;            // of x's dtype
  const void* grad_h_in;    // of x's dtype
  const void* grad_x_post;  // [tokens, streams, columns], of x's dtype, or null
  const void* phi;
  const void* gamma;  // or null
  const void* h_pre;
  const void* grad_mix;
  const void* x_factor;
  int64_t stream;
  int64_t first;
  int64_t count;
  void* grad_x;      // of x's dtype
  void* grad_phi;    // [rows, depth]
  void* grad_gamma;  // [streams, columns]
};

// The tokens [first, first + count) of npu_mhc_post.
struct PostTask {
  Sizes sizes;
  const void* x;      // of x's dtype
  const void* h_res;  // [tokens, streams, streams], or null
  const void* h_out;  // [tokens, columns], of x's dtype
  const void* h_post;
  int64_t first;
  int64_t count;
  void* y;  // [tokens, streams, columns], of x's dtype
};

struct PostGradTask {
  PostTask of;         // y is not used
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
  void (*mix)(const MixTask& task);
  void (*pre)(const PreTask& task);
  void (*pre_grad_rows)(const PreGradRowsTask& task);
  void (*pre_grad_columns)(const PreGradColumnsTask& task);
  void (*post[3])(const PostTask& task);
  void (*post_grad[3])(const PostGradTask& task);
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
