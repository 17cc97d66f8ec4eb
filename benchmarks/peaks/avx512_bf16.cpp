#include <custom_pypto/cpu/avx512_bf16.h>

#include "multiply_add.h"

CUSTOM_PYPTO_PEAKS_UNIT(avx512_bf16_unit)
