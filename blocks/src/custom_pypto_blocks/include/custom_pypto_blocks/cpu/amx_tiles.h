// Products in AMX's tile registers, by the instruction CUSTOM_PYPTO_TILE_PRODUCT.
#pragma once

#define CUSTOM_PYPTO_CPU_TILES

#include "avx512_vnni.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// Rows of a tile register; as many lanes and steps are in one.
inline constexpr int64_t kTileRows = 16;

// Makes all tile registers as large as they can be, until it is destroyed.
class Tiles {
 public:
  Tiles() {
    alignas(64) struct {
      uint8_t palette, start_row, reserved[14];
      uint16_t row_bytes[16];
      uint8_t rows[16];
    } config = {};
    config.palette = 1;
    for (int tile = 0; tile < 8; ++tile) {
      config.row_bytes[tile] = 64;
      config.rows[tile] = kTileRows;
    }
    // GCC takes 8 bytes for all that its intrinsic reads.
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  ~Tiles() { _tile_release(); }
};

// The parts of multiply_tiles. The sums are in the registers 0 and 2, of kTileRows rows each, and
// in 1 and 3 of as many further lanes.
inline void clear_tiles() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}
template <class Sum>
inline __attribute__((always_inline)) void load_tiles(const Sum* c, int64_t stride, bool is_wide) {
  asm volatile("" ::: "memory");  // GCC does not know that tiles are loaded from memory
  const Sum* const next = c + kTileRows * stride / 4;
  _tile_loadd(0, c, stride);
  _tile_loadd(2, next, stride);
  if (!is_wide) return;
  _tile_loadd(1, c + kTileRows, stride);
  _tile_loadd(3, next + kTileRows, stride);
}
template <class Sum>
inline __attribute__((always_inline)) void store_tiles(Sum* c, int64_t stride, bool is_wide) {
  Sum* const next = c + kTileRows * stride / 4;
  _tile_stored(0, c, stride);
  _tile_stored(2, next, stride);
  if (!is_wide) return;
  _tile_stored(1, c + kTileRows, stride);
  _tile_stored(3, next + kTileRows, stride);
}

// a's numbers of one step are a_step bytes behind those of the step before.
template <class Between>
inline __attribute__((always_inline)) void add_tile_products(const char* a, int64_t a_stride,
                                                             int64_t a_step, const char* b,
                                                             int64_t b_stride, int64_t steps,
                                                             bool is_wide, const Between& between) {
  asm volatile("" ::: "memory");
  const int64_t next_rows = kTileRows * a_stride;
  for (int64_t step = 0; step < steps; step += kTileRows) {
    _tile_loadd(4, a, a_stride);
    _tile_loadd(6, b, b_stride);
    CUSTOM_PYPTO_TILE_PRODUCT(0, 4, 6);
    _tile_loadd(5, a + next_rows, a_stride);
    CUSTOM_PYPTO_TILE_PRODUCT(2, 5, 6);
    if (is_wide) {
      _tile_loadd(7, b + 64, b_stride);
      CUSTOM_PYPTO_TILE_PRODUCT(1, 4, 7);
      CUSTOM_PYPTO_TILE_PRODUCT(3, 5, 7);
    }
    a += a_step;
    b += kTileRows * b_stride;
    between();
  }
}

template <class Sum, class Between>
inline __attribute__((always_inline)) void multiply_tiles(const char* a, int64_t a_stride,
                                                          const char* b, int64_t b_stride,
                                                          int64_t steps, Sum* c, int64_t c_stride,
                                                          bool is_wide, bool adds,
                                                          const Between& between) {
  adds ? load_tiles(c, c_stride, is_wide) : clear_tiles();
  add_tile_products(a, a_stride, 64, b, b_stride, steps, is_wide, between);
  store_tiles(c, c_stride, is_wide);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
