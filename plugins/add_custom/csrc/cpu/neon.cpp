#include <custom_pypto/cpu/neon.h>

#include "add_row.h"

CUSTOM_PYPTO_ADD_CUSTOM_TABLE(neon_kernels)
