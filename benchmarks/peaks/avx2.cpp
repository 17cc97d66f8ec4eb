#include <custom_pypto/cpu/avx2.h>

#include "multiply_add.h"

CUSTOM_PYPTO_PEAKS_UNIT(avx2_unit)
