// The kernels of this process: those of the best instruction set, or the one that is forced.
#pragma once

#include "cpu/kernels.h"

namespace custom_pypto_lightning_indexer {

// Throws std::runtime_error when CUSTOM_PYPTO_CPU_ISA names a level that the machine lacks.
const Kernels& kernels();

}  // namespace custom_pypto_lightning_indexer
