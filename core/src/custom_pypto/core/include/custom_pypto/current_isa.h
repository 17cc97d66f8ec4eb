// current_isa: the instruction set that this process uses for CPU kernels, detected once, or forced
// by CUSTOM_PYPTO_CPU_ISA.
//
// Sources that are compiled *for* an instruction set must not include this header: see
// cpu/kernel_table.h.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/cpu/isa.h>
#include <custom_pypto/printable.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

CUSTOM_PYPTO_NAMESPACE_BEGIN

struct NamedIsa {
  Isa isa;
  const char* name;
};
#define CUSTOM_PYPTO_ISA(isa, ...) {Isa::isa, #isa},
inline constexpr NamedIsa kAllIsas[] = {CUSTOM_PYPTO_FOR_EVERY_ISA(CUSTOM_PYPTO_ISA)};
#undef CUSTOM_PYPTO_ISA

inline constexpr const char* kIsaVariable = "CUSTOM_PYPTO_CPU_ISA";

#if defined(__x86_64__)
// Whether the processor multiplies bf16 and int8 in tile registers, and Linux lets this process do
// so, which has to be asked for.
inline bool may_use_tiles() {
  constexpr unsigned kTiles = 1u << 22 | 1u << 24 | 1u << 25;  // amx-bf16, amx-tile, amx-int8
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return (edx & kTiles) == kTiles && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Intel's processors multiply pairs of bf16 no faster than fp32 (measured: at half its rate).
inline bool is_chosen(Isa isa) { return isa != Isa::avx512_bf16 || !__builtin_cpu_is("intel"); }
#else
inline bool is_chosen(Isa) { return true; }
#endif

// Whether this machine (processor and operating system) runs code built for `isa`.
inline bool machine_has(Isa isa) {
  if (isa == Isa::portable) return true;
#if defined(__x86_64__)
  // f16c and avxvnni by cpuid, because clang before 18 and older compilers do not know their names.
  // avx2 implies that the operating system saves the registers.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  const bool avx512_vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  if (isa == Isa::avx2) return avx2;
  if (isa == Isa::avx2_vnni) {
    constexpr unsigned kAvxVnni = 1u << 4;
    return avx2 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvxVnni) != 0;
  }
  if (isa == Isa::avx512) return avx512;
  if (isa == Isa::avx512_vnni) return avx512_vnni;
  const bool avx512_bf16 = avx512_vnni && __builtin_cpu_supports("avx512bf16");
  if (isa == Isa::avx512_bf16) return avx512_bf16;
  if (isa == Isa::amx_int8 || isa == Isa::amx_bf16) return avx512_bf16 && may_use_tiles();
#elif defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kAsimd = 1UL << 1;     // HWCAP_ASIMD
  constexpr unsigned long kAsimdDp = 1UL << 20;  // HWCAP_ASIMDDP
  constexpr unsigned long kI8mm = 1UL << 13;     // HWCAP2_I8MM
  constexpr unsigned long kBf16 = 1UL << 14;     // HWCAP2_BF16
  const bool neon = (getauxval(AT_HWCAP) & kAsimd) != 0;
  const bool neon_dot = neon && (getauxval(AT_HWCAP) & kAsimdDp) != 0;
  const bool neon_bf16 = neon_dot && (getauxval(AT_HWCAP2) & kBf16) != 0;
  if (isa == Isa::neon) return neon;
  if (isa == Isa::neon_dot) return neon_dot;
  if (isa == Isa::neon_bf16) return neon_bf16;
  if (isa == Isa::neon_i8mm) return neon_bf16 && (getauxval(AT_HWCAP2) & kI8mm) != 0;
#endif
  return false;
}

// The machine's best instruction set, or the one that `forced` names: the value of
// CUSTOM_PYPTO_CPU_ISA, or null or empty for none. Throws std::runtime_error when `forced` is no
// instruction set, or one that this machine lacks.
CUSTOM_PYPTO_COLD inline Isa choose_isa(const char* forced) {
  const std::string_view asked = forced == nullptr ? "" : forced;
  std::string problem = "is not an instruction set";
  for (const auto& [isa, name] : kAllIsas) {
    if (asked != name) continue;
    if (machine_has(isa)) return isa;
    problem = "is an instruction set that this machine lacks";
  }
  Isa best = Isa::portable;
  std::string available;
  for (const auto& [isa, name] : kAllIsas) {
    if (!machine_has(isa)) continue;
    if (is_chosen(isa)) best = isa;
    available += (available.empty() ? "" : ", ") + std::string(name);
  }
  if (asked.empty()) return best;
  throw std::runtime_error(std::string(kIsaVariable) + "='" + printable(forced) + "' " + problem +
                           "; this machine has: " + available + ". Set " + kIsaVariable +
                           " to one of these, or unset it for the best one");
}

// The instruction set of this process. Read from the environment at the first call that succeeds;
// without a lock, which a forked process would inherit from a thread that it does not have.
inline Isa current_isa() {
  static std::atomic<int> chosen{-1};
  int isa = chosen.load(std::memory_order_relaxed);
  if (CUSTOM_PYPTO_UNLIKELY(isa < 0)) {
    isa = static_cast<int>(choose_isa(std::getenv(kIsaVariable)));
    chosen.store(isa, std::memory_order_relaxed);
  }
  return static_cast<Isa>(isa);
}

CUSTOM_PYPTO_NAMESPACE_END

#ifndef CUSTOM_PYPTO_FOR_EACH_ISA_OF_LIBRARY  // custom_pypto_build defines it
#define CUSTOM_PYPTO_FOR_EACH_ISA_OF_LIBRARY CUSTOM_PYPTO_FOR_EACH_ISA
#endif

// For core: the instruction set of this library's kernels; null when CUSTOM_PYPTO_CPU_ISA names one
// that the machine lacks. Weak, because each source that includes this header defines it.
CUSTOM_PYPTO_EXPORT __attribute__((weak)) const char* custom_pypto_cpu_isa_v1() noexcept {
  try {
    const char* last = nullptr;
#define CUSTOM_PYPTO_SET_NAME(each, ...) \
  if (custom_pypto::Isa::each <= custom_pypto::current_isa()) last = #each;
    CUSTOM_PYPTO_FOR_EACH_ISA_OF_LIBRARY(CUSTOM_PYPTO_SET_NAME, )
    return last;
  } catch (const std::runtime_error&) {
    return nullptr;
  }
}
