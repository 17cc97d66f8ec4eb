#include <custom_pypto/cpu/avx2.h>

#include "add_row.h"

CUSTOM_PYPTO_ADD_CUSTOM_TABLE(avx2_kernels)
