#include <custom_pypto/cpu/neon_bf16.h>

#include "multiply_add.h"

CUSTOM_PYPTO_PEAKS_UNIT(neon_bf16_unit)
