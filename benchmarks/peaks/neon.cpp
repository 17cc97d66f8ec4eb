#include <custom_pypto/cpu/neon.h>

#include "multiply_add.h"

CUSTOM_PYPTO_PEAKS_UNIT(neon_unit)
