// The list of instruction sets that kernels are compiled for. No code, and nothing of the standard
// library. Their compiler flags are in isa.toml.
#pragma once

#include <custom_pypto/abi.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// Within a processor family a later one includes the earlier ones; portable is in every family.
enum class Isa { portable, avx2, avx512, avx512_bf16, neon, neon_bf16 };

CUSTOM_PYPTO_NAMESPACE_END

// Calls `macro(isa, ...)` for each instruction set that kernels for this processor are compiled
// for.
#if defined(__x86_64__)
#define CUSTOM_PYPTO_FOR_EACH_ISA(macro, ...)                                      \
  macro(portable, __VA_ARGS__) macro(avx2, __VA_ARGS__) macro(avx512, __VA_ARGS__) \
      macro(avx512_bf16, __VA_ARGS__)
#elif defined(__aarch64__)
#define CUSTOM_PYPTO_FOR_EACH_ISA(macro, ...) \
  macro(portable, __VA_ARGS__) macro(neon, __VA_ARGS__) macro(neon_bf16, __VA_ARGS__)
#else
#define CUSTOM_PYPTO_FOR_EACH_ISA(macro, ...) macro(portable, __VA_ARGS__)
#endif
