#include <custom_pypto/cpu/portable.h>

#include "table.h"

CUSTOM_PYPTO_LIGHTNING_INDEXER_TABLE(portable_kernels)
