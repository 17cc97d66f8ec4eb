// When torch multiplies with the weights of linear layers faster than multiply_linear of linear.h.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/current_isa.h>
#include <custom_pypto/dtype.h>

#include <cstdint>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// Whether torch's own product of rows and weights [columns, depth] takes less time than
// multiply_linear, which `copies` weights of other strides. Measured on a Xeon with AMX, for the
// instruction set of our kernels, with torch limited to the same one:
// - fp32: torch is faster from some 48 rows on, and where it need not copy the weight;
// - bf16: torch is faster from 65 rows on with AMX, and from 7 on with other instructions of bf16;
//   elsewhere ours is, 3 to 6 times from 4 rows on;
// - fp16: torch is faster from 64 rows on with AVX-512 FP16, which every processor with AMX has;
//   elsewhere ours is, 3 to 9 times from 4 rows on;
// - a weight that must be copied takes as long as a product of torch with some 16 rows.
inline bool is_torch_faster(ScalarType dtype, int64_t rows, bool copies) {
  static const Isa isa = current_isa();
  static const bool has_amx = isa == Isa::amx_bf16;
  static const bool has_bf16 = has_amx || isa == Isa::avx512_bf16 || isa >= Isa::neon_bf16;
  switch (dtype) {
    case ScalarType::BFloat16:
      return has_bf16 ? copies || rows > (has_amx ? 64 : 6) : copies && rows <= 16;
    case ScalarType::Half:
      return has_amx ? copies || rows > 63 : copies && rows <= 16;
    case ScalarType::Float:
      return copies || rows > 47;
    default:
      return true;
  }
}

CUSTOM_PYPTO_NAMESPACE_END
