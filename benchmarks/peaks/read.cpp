// The loop that reads memory.
#include "units.h"

namespace custom_pypto_peaks {

uint64_t read(const uint64_t* data, int64_t count) {
  uint64_t sums[8] = {};
  for (int64_t line = 0; line < count; ++line) {
    for (int i = 0; i < 8; ++i) sums[i] += data[line * 8 + i];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace custom_pypto_peaks
