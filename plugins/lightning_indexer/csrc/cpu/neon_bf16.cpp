#include <custom_pypto/cpu/neon_bf16.h>

#include "table.h"

CUSTOM_PYPTO_LIGHTNING_INDEXER_TABLE(neon_bf16_kernels)
