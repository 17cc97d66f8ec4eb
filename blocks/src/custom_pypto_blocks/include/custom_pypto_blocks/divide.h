// Division that rounds up.
#pragma once

#include <stdint.h>

namespace custom_pypto {

// For numbers of at least 0. Always inlined, since kernels of each instruction set call it too: the
// linker must not merge their copies.
__attribute__((always_inline)) constexpr int64_t divide_up(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

}  // namespace custom_pypto
