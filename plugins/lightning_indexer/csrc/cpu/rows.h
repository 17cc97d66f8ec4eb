// Rows of numbers: widened to fp32, or packed as vector lanes. And the size of a tile.
#pragma once

#include <custom_pypto_blocks/cpu/widen.h>

#include "indexer_kernels.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_lightning_indexer::kAlignment;
using custom_pypto_lightning_indexer::kTokenBlock;

// Keys of a tile: the step's heads and one broadcast need registers too.
inline constexpr int kTileKeys = kLanes >= 8 || kTileVectors >= 4 ? 6 : 4;

constexpr int64_t align(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Widens `count` numbers, `stride` numbers apart.
inline void widen_row(const char* row, Element element, int64_t stride, int64_t count, float* out) {
  switch (element) {
    case Element::fp32:
      return widen(reinterpret_cast<const float*>(row), stride, count, out);
    case Element::bf16:
      return widen(reinterpret_cast<const Bf16*>(row), stride, count, out);
    case Element::fp16:
      return widen(reinterpret_cast<const Fp16*>(row), stride, count, out);
    case Element::int8:
    case Element::e4m3:
      return;  // not widened
  }
}

// Packs rows of words, `stride` bytes apart: word `step` of row `lane` goes to index
// step * lanes + lane; zero for lane >= count. If words are of 4 bytes, prefetches the next `count`
// rows, which probably belong to the next query token.
template <class Word = int32_t>
inline void pack_rows(const char* rows, int64_t stride, int64_t count, int64_t lanes, int64_t steps,
                      char* packed) {
  const int64_t whole_lanes = count / kLanes * kLanes;
  const int64_t whole_steps = sizeof(Word) == 4 ? steps / kLanes * kLanes : 0;
  for (int64_t lane = 0; lane < whole_lanes; lane += kLanes) {
    for (int64_t step = 0; step < whole_steps; step += kLanes) {
      F32 words[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const char* row = rows + (lane + i) * stride + step * 4;
        __builtin_prefetch(row + count * stride);
        words[i] = load(reinterpret_cast<const float*>(row));
      }
      transpose(words);
      for (int i = 0; i < kLanes; ++i) {
        store(reinterpret_cast<float*>(packed + ((step + i) * lanes + lane) * 4), words[i]);
      }
    }
  }
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t lane = step < whole_steps ? whole_lanes : 0; lane < lanes; ++lane) {
      constexpr int64_t kBytes = sizeof(Word);
      Word word = 0;
      if (lane < count) __builtin_memcpy(&word, rows + lane * stride + step * kBytes, kBytes);
      __builtin_memcpy(packed + (step * lanes + lane) * kBytes, &word, kBytes);
    }
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
