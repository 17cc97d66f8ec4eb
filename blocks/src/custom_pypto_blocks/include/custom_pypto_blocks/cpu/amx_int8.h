// The instruction set amx_int8: avx512_vnni and products of int8 in tile registers.
#pragma once

#define CUSTOM_PYPTO_TILE_PRODUCT _tile_dpbusd

#include "amx_tiles.h"
