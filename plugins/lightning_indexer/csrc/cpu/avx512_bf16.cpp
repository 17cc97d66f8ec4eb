#include <custom_pypto/cpu/avx512_bf16.h>

#include "table.h"

CUSTOM_PYPTO_LIGHTNING_INDEXER_TABLE(avx512_bf16_kernels)
