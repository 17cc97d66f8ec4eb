// The instruction sets that kernels are compiled for. No code, and nothing of the standard library.
// Their compiler flags are in isa.toml.
#pragma once

#include <custom_pypto/abi.h>

// The lists of the processor families, beside `portable`, which is in every family. Each calls
// `any(isa, ...)` for sets of all kernels, and `bf16(isa, ...)` and `int8(isa, ...)` for those of
// kernels that multiply such numbers. A later set of a list is better than an earlier one.
#define CUSTOM_PYPTO_X86_64_ISAS(any, bf16, int8, ...)                                          \
  any(avx2, __VA_ARGS__) int8(avx2_vnni, __VA_ARGS__) any(avx512, __VA_ARGS__)                  \
      int8(avx512_vnni, __VA_ARGS__) bf16(avx512_bf16, __VA_ARGS__) int8(amx_int8, __VA_ARGS__) \
          bf16(amx_bf16, __VA_ARGS__)
#define CUSTOM_PYPTO_AARCH64_ISAS(any, bf16, int8, ...)                          \
  any(neon, __VA_ARGS__) int8(neon_dot, __VA_ARGS__) any(neon_bf16, __VA_ARGS__) \
      int8(neon_i8mm, __VA_ARGS__)

#if defined(__x86_64__)
#define CUSTOM_PYPTO_ISAS_OF_PROCESSOR CUSTOM_PYPTO_X86_64_ISAS
#elif defined(__aarch64__)
#define CUSTOM_PYPTO_ISAS_OF_PROCESSOR CUSTOM_PYPTO_AARCH64_ISAS
#else
#define CUSTOM_PYPTO_ISAS_OF_PROCESSOR(any, bf16, int8, ...)
#endif
#define CUSTOM_PYPTO_NO_ISA(isa, ...)
#define CUSTOM_PYPTO_WITH_PORTABLE(macro, bf16, int8, ...) \
  macro(portable, __VA_ARGS__) CUSTOM_PYPTO_ISAS_OF_PROCESSOR(macro, bf16, int8, __VA_ARGS__)

// Call `macro(isa, ...)` for each instruction set that a source for this processor is compiled for:
// one of `sources`, of `bf16-sources`, of `int8-sources`, or of the last two.
#define CUSTOM_PYPTO_FOR_EACH_ISA(macro, ...) \
  CUSTOM_PYPTO_WITH_PORTABLE(macro, CUSTOM_PYPTO_NO_ISA, CUSTOM_PYPTO_NO_ISA, __VA_ARGS__)
#define CUSTOM_PYPTO_FOR_EACH_BF16_ISA(macro, ...) \
  CUSTOM_PYPTO_WITH_PORTABLE(macro, macro, CUSTOM_PYPTO_NO_ISA, __VA_ARGS__)
#define CUSTOM_PYPTO_FOR_EACH_INT8_ISA(macro, ...) \
  CUSTOM_PYPTO_WITH_PORTABLE(macro, CUSTOM_PYPTO_NO_ISA, macro, __VA_ARGS__)
#define CUSTOM_PYPTO_FOR_EACH_BF16_INT8_ISA(macro, ...) \
  CUSTOM_PYPTO_WITH_PORTABLE(macro, macro, macro, __VA_ARGS__)

// All processors' instruction sets.
#define CUSTOM_PYPTO_FOR_EVERY_ISA(macro)                           \
  macro(portable, ) CUSTOM_PYPTO_X86_64_ISAS(macro, macro, macro, ) \
      CUSTOM_PYPTO_AARCH64_ISAS(macro, macro, macro, )

CUSTOM_PYPTO_NAMESPACE_BEGIN

#define CUSTOM_PYPTO_ISA(isa, ...) isa,
enum class Isa { CUSTOM_PYPTO_FOR_EVERY_ISA(CUSTOM_PYPTO_ISA) };
#undef CUSTOM_PYPTO_ISA

CUSTOM_PYPTO_NAMESPACE_END
