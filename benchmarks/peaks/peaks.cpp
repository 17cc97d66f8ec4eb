// The functions that peak.py calls: they run the loops on torch's threads.
#include <custom_pypto/current_isa.h>
#include <custom_pypto/parallel.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "units.h"

namespace custom_pypto_peaks {
namespace {

struct OfIsa {
  custom_pypto::Isa isa;
  const Unit* unit;
};

#define CUSTOM_PYPTO_PEAKS_ENTRY(isa, name) {custom_pypto::Isa::isa, &name##_##isa},
const OfIsa kUnits[] = {CUSTOM_PYPTO_FOR_EACH_ISA(CUSTOM_PYPTO_PEAKS_ENTRY, unit)
                            CUSTOM_PYPTO_FOR_EACH_INT8_ISA(CUSTOM_PYPTO_PEAKS_ENTRY, int8_unit)};
#undef CUSTOM_PYPTO_PEAKS_ENTRY

// Null where the machine has no such unit.
const Unit* find(std::string_view name) {
  for (const OfIsa& each : kUnits) {
    if (custom_pypto::isa_name(each.isa) != name) continue;
    return custom_pypto::machine_has(each.isa) ? each.unit : nullptr;
  }
  return nullptr;
}

// Results are stored here, so that the compiler keeps the loops.
volatile float kept_sum;
volatile uint64_t kept_count;

// Calls work(begin, end) for all of [0, size), in many pieces. A thread takes the next piece when
// it has finished one, so that a thread on a busy core does less, as in the kernels.
template <typename Work>
void share(int64_t size, const Work& work) {
  constexpr int64_t kPieces = 256;
  const int64_t piece = (size + kPieces - 1) / kPieces;
  std::atomic<int64_t> next{0};
  const int64_t threads = custom_pypto::num_threads();
  custom_pypto::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
    for (;;) {
      const int64_t begin = next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= size) return;
      work(begin, std::min(begin + piece, size));
    }
  });
}

}  // namespace
}  // namespace custom_pypto_peaks

// Runs `rounds` rounds; returns their number of operations, or 0 if the machine lacks the unit.
CUSTOM_PYPTO_EXPORT int64_t custom_pypto_peak_multiply_add(const char* isa, int64_t rounds) {
  using namespace custom_pypto_peaks;
  const Unit* unit = find(isa);
  if (unit == nullptr) return 0;
  share(rounds, [&](int64_t begin, int64_t end) { kept_sum = unit->run(end - begin, 0.01F); });
  return unit->flop * rounds;
}

// Reads `size` bytes; returns how many were read.
CUSTOM_PYPTO_EXPORT int64_t custom_pypto_peak_read(const uint64_t* data, int64_t size) {
  using namespace custom_pypto_peaks;
  constexpr int64_t kLine = 64;
  const int64_t lines = size / kLine;
  share(lines, [&](int64_t begin, int64_t end) {
    kept_count = read(data + begin * (kLine / 8), end - begin);
  });
  return lines * kLine;
}
