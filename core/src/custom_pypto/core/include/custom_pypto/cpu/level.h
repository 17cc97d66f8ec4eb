// The names of the instruction set levels. Includes no standard library: kernels say here which
// level they are built for.
#pragma once

#include <custom_pypto/abi.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// Within a processor family a later level includes the earlier ones; portable is in every family.
enum class Isa { portable, avx2, avx512, avx512_bf16, neon, neon_bf16 };

inline constexpr Isa kAllIsas[] = {Isa::portable,    Isa::avx2, Isa::avx512,
                                   Isa::avx512_bf16, Isa::neon, Isa::neon_bf16};

constexpr const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::portable:
      return "portable";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512_bf16";
    case Isa::neon:
      return "neon";
    case Isa::neon_bf16:
      return "neon_bf16";
  }
  return "unknown";
}

CUSTOM_PYPTO_NAMESPACE_END
