#include <custom_pypto/cpu/avx2.h>

#include "table.h"

CUSTOM_PYPTO_LIGHTNING_INDEXER_TABLE(avx2_kernels)
