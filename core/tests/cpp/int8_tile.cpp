// a [rows, depth] times b [columns, depth], int8 numbers summed as int32: compiled for one
// instruction set.
#include <custom_pypto/cpu/int8_tile.h>

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

constexpr int64_t kLargestDepth = 1 << 17;

void multiply_row(const int8_t* row, int64_t stride, const char* panel, const int32_t* start,
                  int64_t depth, int32_t* out) {
  alignas(64) static char stored[kLargestDepth * 2];
  store_int8_row(row, stride, depth, stored);
  const char* rows[] = {stored};
  I32 sums[1][1] = {{load(start)}};
  multiply_tile<Int8Operand, 1, 1>(sums, rows, panel, kLanes * Int8Operand::kStepBytes,
                                   int8_steps(depth));
  store(out, sums[0][0]);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

// a's numbers are `stride` numbers apart. out: [columns, rows].
extern "C" void multiply(const int8_t* a, int64_t rows, int64_t stride, const int8_t* b,
                         int64_t columns, int64_t depth, int32_t* out) {
  using namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;
  alignas(64) static char panel[kLargestDepth * 2 * kLanes];
  for (int64_t first = 0; first < columns; first += kLanes) {
    const int64_t count = columns - first < kLanes ? columns - first : kLanes;
    int32_t start[kLanes];
    pack_int8([&](int64_t lane, int64_t k) { return b[(first + lane) * depth + k]; }, count, kLanes,
              depth, panel, start);
    for (int64_t r = 0; r < rows; ++r) {
      int32_t sums[kLanes];
      multiply_row(a + r * depth * stride, stride, panel, start, depth, sums);
      for (int64_t lane = 0; lane < count; ++lane) out[(first + lane) * rows + r] = sums[lane];
    }
  }
}
