#include <custom_pypto/cpu/avx512.h>

#include "table.h"

CUSTOM_PYPTO_LIGHTNING_INDEXER_TABLE(avx512_kernels)
