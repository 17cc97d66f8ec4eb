// CUSTOM_PYPTO_LIGHTNING_INDEXER_TABLE(portable_kernels): the table of the level included before.
#pragma once

#include "kernels.h"
#include "score.h"
#include "select.h"

#define CUSTOM_PYPTO_LIGHTNING_INDEXER_TABLE(name)             \
  namespace custom_pypto_lightning_indexer {                   \
  namespace level = custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL; \
  const Kernels name = {                                       \
      custom_pypto::Isa::CUSTOM_PYPTO_CPU_LEVEL,               \
      &level::packed_row_bytes,                                \
      &level::pack,                                            \
      &level::score_scratch_bytes,                             \
      &level::score,                                           \
      &level::select_scratch_bytes,                            \
      &level::select,                                          \
  };                                                           \
  }  // namespace custom_pypto_lightning_indexer
