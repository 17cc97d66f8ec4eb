#include <custom_pypto/cpu/neon.h>

#include "table.h"

CUSTOM_PYPTO_LIGHTNING_INDEXER_TABLE(neon_kernels)
