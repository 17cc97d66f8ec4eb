// How many sums a loop works on.
#pragma once

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// Independent sums: enough to hide the latency, few enough for the registers.
#if defined(__aarch64__)
inline constexpr int kChains = 24;
#else
inline constexpr int kChains = 14;
#endif

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
