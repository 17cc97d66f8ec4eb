#include <custom_pypto/cpu/portable.h>

#include "add_row.h"

CUSTOM_PYPTO_ADD_CUSTOM_TABLE(portable_kernels)
