// glibc has this variable since 2.32, and libstdc++ reads it where it is declared. To say that
// there may be several threads is always right.
#pragma once

static const char __libc_single_threaded __attribute__((unused)) = 0;
