// What peak.py calls: work for a unit on as many threads as torch uses.
#include <custom_pypto/isa.h>
#include <custom_pypto/parallel.h>

#include <string_view>

#include "units.h"

namespace custom_pypto_peaks {
namespace {

const Unit* const kUnits[] = {
#if defined(__x86_64__)
    &avx2_unit, &avx512_unit, &avx512_bf16_unit,
#elif defined(__aarch64__)
    &neon_unit, &neon_bf16_unit,
#endif
    nullptr,  // other processors have none
};

const Unit* find(const char* isa) {
  for (const Unit* unit : kUnits) {
    if (unit != nullptr && custom_pypto::isa_name(unit->isa) == std::string_view(isa)) return unit;
  }
  return nullptr;
}

// What is computed goes here, for all that a compiler knows.
volatile float kept_sum;
volatile uint64_t kept_count;

}  // namespace
}  // namespace custom_pypto_peaks

// Runs `rounds` rounds in every thread; gives the operations of all of them, or 0 where the machine
// has no such unit.
CUSTOM_PYPTO_EXPORT int64_t custom_pypto_peak_multiply_add(const char* isa, int64_t rounds) {
  using namespace custom_pypto_peaks;
  const Unit* unit = find(isa);
  if (unit == nullptr || !custom_pypto::machine_has(unit->isa)) return 0;
  const int64_t threads = custom_pypto::num_threads();
  custom_pypto::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin) kept_sum = unit->run(rounds, 0.01F);
  });
  return unit->flop * rounds * threads;
}

// Reads `size` bytes, each thread a part of them; gives how many were read.
CUSTOM_PYPTO_EXPORT int64_t custom_pypto_peak_read(const uint64_t* data, int64_t size) {
  constexpr int64_t kLine = 64;
  const int64_t lines = size / kLine;
  const int64_t threads = custom_pypto::num_threads();
  custom_pypto::parallel_for(
      0, lines, (lines + threads - 1) / threads, [&](int64_t begin, int64_t end) {
        custom_pypto_peaks::kept_count =
            custom_pypto_peaks::read(data + begin * (kLine / 8), end - begin);
      });
  return lines * kLine;
}
