// The instruction set amx_bf16: avx512_bf16 and products of bf16 in tile registers.
#pragma once

#define CUSTOM_PYPTO_TILE_PRODUCT _tile_dpbf16ps

#include "amx_tiles.h"
#include "avx512_bf16.h"
