// Products with the weights of linear layers: kernels that are compiled for each instruction set,
// as their callers name them.
#pragma once

#include <stdint.h>

namespace custom_pypto::cpu {

// out[r, c] = bias[c] + the sum over k of rows[r, k] * weight[c, k], for the columns [first, last)
// of `out`: accumulated in fp32 and rounded once. Rows, weights and bias are contiguous.
//
// Weights of int8 or int4 stand for (weight[c, k] + offset[g, c]) * scale[g, c], where g is
// k / group. int4 numbers are two in a byte, the first in its low half.
struct LinearTask {
  const void* rows;
  int64_t count;
  int64_t depth;
  const void* weight;
  const void* bias;      // or null
  bool has_fp32_bias;    // whether bias is of fp32, whatever rows are
  const void* scale;     // for int8 and int4
  const void* offset;    // or null
  int64_t group;         // a multiple of 32, or depth
  int64_t scale_stride;  // between the groups of scale and of offset
  int64_t first;
  int64_t last;
  void* out;
  int64_t out_stride;
  int64_t row;    // the place of the first row in the whole product
  char* scratch;  // scratch(task) bytes, aligned as Scratch is
};

// The kernel for one dtype. linear.h defines an instruction set's kernels.
struct LinearKernel {
  void (*run)(const LinearTask& task);
  int64_t (*scratch)(const LinearTask& task);
  int64_t element;        // bytes of a number of rows
  int64_t out_bytes;      // of a number of out
  int64_t tile_rows = 6;  // rows are divided in multiples of it
  // Null, or whether this kernel takes a whole product; `other` takes the rest.
  bool (*takes)(const LinearTask& task) = nullptr;
  const LinearKernel* other = nullptr;
};

}  // namespace custom_pypto::cpu
