// The list of instruction sets that kernels are compiled for. No code, and nothing of the standard
// library. Their compiler flags are in isa.toml.
#pragma once

#include <custom_pypto/abi.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// Within a processor family, of two that a machine has the later one is the better. portable is in
// every family.
enum class Isa {
  portable,
  avx2,
  avx2_vnni,
  avx512,
  avx512_vnni,
  avx512_bf16,
  neon,
  neon_dot,
  neon_bf16
};

// The instruction set of ordinary kernels on a machine that uses `isa`: some are for int8 kernels
// alone.
constexpr Isa ordinary_isa(Isa isa) {
  switch (isa) {
    case Isa::avx2_vnni:
      return Isa::avx2;
    case Isa::avx512_vnni:
      return Isa::avx512;
    case Isa::neon_dot:
      return Isa::neon;
    default:
      return isa;
  }
}

CUSTOM_PYPTO_NAMESPACE_END

// CUSTOM_PYPTO_FOR_EACH_ISA calls `macro(isa, ...)` for each instruction set that kernels for this
// processor are compiled for; CUSTOM_PYPTO_FOR_EACH_INT8_ISA for each further one of int8 kernels.
#if defined(__x86_64__)
#define CUSTOM_PYPTO_FOR_EACH_ISA(macro, ...)                                      \
  macro(portable, __VA_ARGS__) macro(avx2, __VA_ARGS__) macro(avx512, __VA_ARGS__) \
      macro(avx512_bf16, __VA_ARGS__)
#define CUSTOM_PYPTO_FOR_EACH_INT8_ISA(macro, ...) \
  macro(avx2_vnni, __VA_ARGS__) macro(avx512_vnni, __VA_ARGS__)
#elif defined(__aarch64__)
#define CUSTOM_PYPTO_FOR_EACH_ISA(macro, ...) \
  macro(portable, __VA_ARGS__) macro(neon, __VA_ARGS__) macro(neon_bf16, __VA_ARGS__)
#define CUSTOM_PYPTO_FOR_EACH_INT8_ISA(macro, ...) macro(neon_dot, __VA_ARGS__)
#else
#define CUSTOM_PYPTO_FOR_EACH_ISA(macro, ...) macro(portable, __VA_ARGS__)
#define CUSTOM_PYPTO_FOR_EACH_INT8_ISA(macro, ...)
#endif
