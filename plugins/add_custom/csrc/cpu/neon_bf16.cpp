#include <custom_pypto/cpu/neon_bf16.h>

#include "add_row.h"

CUSTOM_PYPTO_ADD_CUSTOM_TABLE(neon_bf16_kernels)
