// The list of instruction sets that kernels are compiled for. No code, and nothing of the standard
// library. Their compiler flags are in isa.toml.
#pragma once

#include <custom_pypto/abi.h>

// CUSTOM_PYPTO_FOR_EVERY_ISA calls `macro(isa, ordinary)` for each instruction set of any
// processor; `ordinary` is that of ordinary kernels on a machine that uses `isa`: some are for int8
// kernels alone. Within a processor family, of two that a machine has the later one is the better.
// portable is in every family.
#define CUSTOM_PYPTO_FOR_EVERY_ISA(macro)                                                  \
  macro(portable, portable) macro(avx2, avx2) macro(avx2_vnni, avx2) macro(avx512, avx512) \
      macro(avx512_vnni, avx512) macro(avx512_bf16, avx512_bf16) macro(neon, neon)         \
          macro(neon_dot, neon) macro(neon_bf16, neon_bf16) macro(neon_i8mm, neon_bf16)

CUSTOM_PYPTO_NAMESPACE_BEGIN

#define CUSTOM_PYPTO_ISA(isa, ordinary) isa,
enum class Isa { CUSTOM_PYPTO_FOR_EVERY_ISA(CUSTOM_PYPTO_ISA) };
#undef CUSTOM_PYPTO_ISA

constexpr Isa ordinary_isa(Isa isa) {
  switch (isa) {
#define CUSTOM_PYPTO_ORDINARY_ISA(isa, ordinary) \
  case Isa::isa:                                 \
    return Isa::ordinary;
    CUSTOM_PYPTO_FOR_EVERY_ISA(CUSTOM_PYPTO_ORDINARY_ISA)
#undef CUSTOM_PYPTO_ORDINARY_ISA
  }
  return Isa::portable;
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
#define CUSTOM_PYPTO_FOR_EACH_INT8_ISA(macro, ...) \
  macro(neon_dot, __VA_ARGS__) macro(neon_i8mm, __VA_ARGS__)
#else
#define CUSTOM_PYPTO_FOR_EACH_ISA(macro, ...) macro(portable, __VA_ARGS__)
#define CUSTOM_PYPTO_FOR_EACH_INT8_ISA(macro, ...)
#endif
