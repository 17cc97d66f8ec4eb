// The instruction sets that kernels are compiled for. No code, and nothing of the standard library.
// Their compiler flags are in isa.toml.
#pragma once

#include <custom_pypto/abi.h>

// The lists of the processor families, beside `portable`, which is in every family. Each calls
// `ordinary(isa, ...)` for instruction sets of all kernels, and `int8(isa, ...)` for sets that
// int8 kernels alone use. A later instruction set is better than an earlier one of the same list.
#define CUSTOM_PYPTO_X86_64_ISAS(ordinary, int8, ...)                                    \
  ordinary(avx2, __VA_ARGS__) int8(avx2_vnni, __VA_ARGS__) ordinary(avx512, __VA_ARGS__) \
      int8(avx512_vnni, __VA_ARGS__) ordinary(avx512_bf16, __VA_ARGS__)
#define CUSTOM_PYPTO_AARCH64_ISAS(ordinary, int8, ...)                                     \
  ordinary(neon, __VA_ARGS__) int8(neon_dot, __VA_ARGS__) ordinary(neon_bf16, __VA_ARGS__) \
      int8(neon_i8mm, __VA_ARGS__)

#if defined(__x86_64__)
#define CUSTOM_PYPTO_ISAS_OF_PROCESSOR CUSTOM_PYPTO_X86_64_ISAS
#elif defined(__aarch64__)
#define CUSTOM_PYPTO_ISAS_OF_PROCESSOR CUSTOM_PYPTO_AARCH64_ISAS
#else
#define CUSTOM_PYPTO_ISAS_OF_PROCESSOR(ordinary, int8, ...)
#endif
#define CUSTOM_PYPTO_NO_ISA(isa, ...)

// CUSTOM_PYPTO_FOR_EACH_ISA calls `macro(isa, ...)` for each instruction set that kernels for this
// processor are compiled for; CUSTOM_PYPTO_FOR_EACH_INT8_ISA for each further one of int8 kernels.
#define CUSTOM_PYPTO_FOR_EACH_ISA(macro, ...) \
  macro(portable, __VA_ARGS__)                \
      CUSTOM_PYPTO_ISAS_OF_PROCESSOR(macro, CUSTOM_PYPTO_NO_ISA, __VA_ARGS__)
#define CUSTOM_PYPTO_FOR_EACH_INT8_ISA(macro, ...) \
  CUSTOM_PYPTO_ISAS_OF_PROCESSOR(CUSTOM_PYPTO_NO_ISA, macro, __VA_ARGS__)

// All processors' instruction sets.
#define CUSTOM_PYPTO_FOR_EVERY_ISA(ordinary, int8)                \
  ordinary(portable, ) CUSTOM_PYPTO_X86_64_ISAS(ordinary, int8, ) \
      CUSTOM_PYPTO_AARCH64_ISAS(ordinary, int8, )

CUSTOM_PYPTO_NAMESPACE_BEGIN

#define CUSTOM_PYPTO_ISA(isa, ...) isa,
enum class Isa { CUSTOM_PYPTO_FOR_EVERY_ISA(CUSTOM_PYPTO_ISA, CUSTOM_PYPTO_ISA) };
#undef CUSTOM_PYPTO_ISA

// The instruction set of ordinary kernels on a machine that uses `isa`: the last one up to `isa`
// that is for all kernels.
constexpr Isa ordinary_isa(Isa isa) {
  Isa last = Isa::portable;
#define CUSTOM_PYPTO_UP_TO_ISA(each, ...) \
  if (Isa::each <= isa) last = Isa::each;
  CUSTOM_PYPTO_FOR_EVERY_ISA(CUSTOM_PYPTO_UP_TO_ISA, CUSTOM_PYPTO_NO_ISA)
#undef CUSTOM_PYPTO_UP_TO_ISA
  return last;
}

CUSTOM_PYPTO_NAMESPACE_END
