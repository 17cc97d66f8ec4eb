// The instruction set levels. Holds no code and includes nothing of the standard library, so that
// kernels can say which level they are built for.
#pragma once

#include <custom_pypto/abi.h>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// Within a processor family a later level includes the earlier ones; portable is in every family.
enum class Isa { portable, avx2, avx512, avx512_bf16, neon, neon_bf16 };

CUSTOM_PYPTO_NAMESPACE_END
