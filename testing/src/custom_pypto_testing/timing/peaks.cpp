// A loop of nothing but multiply-adds, on torch's threads. peaks.py compiles it with the flags of
// an instruction set, once for each kind of numbers: CUSTOM_PYPTO_BF16, CUSTOM_PYPTO_INT8, neither.
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

#ifdef __AMX_BF16__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>

namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
// Independent sums: enough to hide the latency, few enough for the registers.
#if defined(__aarch64__)
constexpr int kChains = 24;
#else
constexpr int kChains = 14;
#endif
using Floats = float __attribute__((vector_size(kBytes)));
using Ints = int32_t __attribute__((vector_size(kBytes)));

#if defined(__AMX_BF16__) && defined(CUSTOM_PYPTO_BF16)
#define PRODUCT _tile_dpbf16ps
constexpr int64_t kDepth = 32;
#elif defined(__AMX_INT8__) && defined(CUSTOM_PYPTO_INT8)
#define PRODUCT _tile_dpbusd
constexpr int64_t kDepth = 64;
#endif

#ifdef PRODUCT
// Multiplications and additions of a round: of 16 x kDepth by kDepth x 16 numbers, four times.
constexpr int64_t kRoundWork = 4 * 2 * 16 * kDepth * 16;

void run(int64_t rounds) {
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config = {1, 0, {}, {64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16}};
  asm volatile("ldtilecfg %0" ::"m"(config));
  for (int64_t round = 0; round < rounds; ++round) {
    PRODUCT(0, 4, 5);
    PRODUCT(1, 4, 5);
    PRODUCT(2, 4, 5);
    PRODUCT(3, 4, 5);
  }
  _tile_release();
}
#else
// With sums of type __m512i, GCC would copy registers in the loop: hence Ints.
// kWork: multiplications and additions for each four bytes of a sum.
#if defined(CUSTOM_PYPTO_BF16) && defined(__AVX512BF16__)
using Sum = __m512;
using Factor = __m512bh;
constexpr int kWork = 4;
Sum step(Sum sum, Factor a) { return _mm512_dpbf16_ps(sum, a, a); }
#elif defined(CUSTOM_PYPTO_BF16) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
using Sum = float32x4_t;
using Factor = bfloat16x8_t;
constexpr int kWork = 4;
Sum step(Sum sum, Factor a) { return vbfdotq_f32(sum, a, a); }
#elif defined(CUSTOM_PYPTO_INT8) && defined(__AVX512VNNI__)
using Sum = Ints;
using Factor = __m512i;
constexpr int kWork = 8;
Sum step(Sum sum, Factor a) { return (Sum)_mm512_dpbusd_epi32((Factor)sum, a, a); }
#elif defined(CUSTOM_PYPTO_INT8) && defined(__AVXVNNI__)
using Sum = Ints;
using Factor = __m256i;
constexpr int kWork = 8;
Sum step(Sum sum, Factor a) { return (Sum)_mm256_dpbusd_avx_epi32((Factor)sum, a, a); }
#elif defined(CUSTOM_PYPTO_INT8) && defined(__ARM_FEATURE_MATMUL_INT8)
using Sum = int32x4_t;
using Factor = int8x16_t;
constexpr int kWork = 16;
Sum step(Sum sum, Factor a) { return vmmlaq_s32(sum, a, a); }
#elif defined(CUSTOM_PYPTO_INT8) && defined(__ARM_FEATURE_DOTPROD)
using Sum = int32x4_t;
using Factor = int8x16_t;
constexpr int kWork = 8;
Sum step(Sum sum, Factor a) { return vdotq_s32(sum, a, a); }
#elif defined(CUSTOM_PYPTO_INT8)
#error "no instruction multiplies int8 and adds"
#else
// Where bf16 has no dot products, kernels widen it.
using Sum = Floats;
using Factor = Floats;
constexpr int kWork = 2;
// Not a * a + sum: the compiler would multiply once, before the loop.
Sum step(Sum sum, Factor a) { return sum * a + a; }
#endif

// The compiler knows no value of a volatile, and keeps what is stored into one.
volatile float operand = 0.01F;
volatile float kept;

template <typename Vector>
Vector fill(float value) {
  const Floats floats = Floats{} + value;
  Vector vector;
  static_assert(sizeof(vector) == sizeof(floats), "one register each");
  std::memcpy(&vector, &floats, sizeof(vector));
  return vector;
}

constexpr int64_t kRoundWork = kChains * (kBytes / 4) * kWork;

template <std::size_t... I>
void run_chains(int64_t rounds, std::index_sequence<I...>) {
  const Factor a = fill<Factor>(operand);
  // Different initial values: the compiler would compute equal sums once.
  Sum sums[] = {fill<Sum>(operand * static_cast<float>(I))...};
  for (int64_t round = 0; round < rounds; ++round) ((sums[I] = step(sums[I], a)), ...);
  Floats total = {};
  std::memcpy(&total, &sums[0], sizeof(total));
  for (const Sum& sum : sums) {
    Floats floats;
    std::memcpy(&floats, &sum, sizeof(floats));
    total += floats;
  }
  kept = total[0];
}

void run(int64_t rounds) { run_chains(rounds, std::make_index_sequence<kChains>()); }
#endif

// A thread takes the next piece when it has finished one, so that a thread on a busy core does
// less, as in the kernels.
struct Pieces {
  std::atomic<int64_t> left;
  int64_t rounds;
};

void work(int64_t, int64_t, void* context) {
  Pieces& pieces = *static_cast<Pieces*>(context);
  while (pieces.left.fetch_sub(1, std::memory_order_relaxed) > 0) {
    run(pieces.rounds);
  }
}

}  // namespace

using ParallelFor = int32_t (*)(int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void*),
                                void*);

// Runs 256 pieces of so many rounds; returns the number of multiplications and additions.
extern "C" int64_t custom_pypto_peak(ParallelFor torch_parallel_for, int64_t threads,
                                     int64_t rounds) {
#ifdef __AMX_BF16__
  syscall(SYS_arch_prctl, 0x1023, 18);  // ARCH_REQ_XCOMP_PERM for the data of tiles
#endif
  constexpr int64_t kPieces = 256;
  Pieces pieces{{kPieces}, rounds};
  torch_parallel_for(0, threads, 1, &work, &pieces);
  return kPieces * rounds * kRoundWork;
}
