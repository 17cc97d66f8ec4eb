#include <custom_pypto/cpu/avx512.h>

#include "add_row.h"

CUSTOM_PYPTO_ADD_CUSTOM_TABLE(avx512_kernels)
