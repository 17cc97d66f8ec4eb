// Division that rounds up.
#pragma once

#include <stdint.h>

namespace custom_pypto {

// Of numbers of at least 0. Always inlined: kernels that are compiled for each instruction set call
// it too, and one's copy must not become another's.
__attribute__((always_inline)) constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace custom_pypto
