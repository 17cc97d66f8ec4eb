// How each element type enters the micro-kernel at this level: which operand, and how rows and
// columns are brought into its steps. Include after custom_pypto/cpu/<level>.h.
#pragma once

#include <custom_pypto/cpu/tile.h>
#include <custom_pypto/cpu/widen.h>

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL {
namespace {

template <class Element>
struct OperandOf {
  using Type = Fp32Operand;
  using Stored = float;  // what a row of steps is a row of
};

#ifdef __AVX512BF16__
template <>
struct OperandOf<Bf16> {
  using Type = Bf16PairOperand;
  using Stored = Bf16;
};
#endif

// Rows and panel vectors of the tile: its accumulators, one step of the panel and one broadcast
// fill the registers.
inline constexpr int kRows = kLanes >= 8 ? 6 : 4;
inline constexpr int kVectors = kLanes >= 16 ? 4 : 2;
inline constexpr int64_t kPanel = int64_t{kLanes} * kVectors;

constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }
constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

// Splits a scratch buffer into aligned pieces.
class Pieces {
 public:
  explicit Pieces(char* begin) : next_(begin) {}
  template <class T = char>
  T* take(int64_t bytes) {
    char* piece = next_;
    next_ += round_up(bytes, 64);
    return reinterpret_cast<T*>(piece);
  }
  char* next() const { return next_; }

 private:
  char* next_;
};

// An operand's steps of the elements of type Element.
template <class Element, class Operand>
struct Steps {
  static_assert(Operand::kDepth == 1, "one number a step");
  // Whether rows of elements can be read as steps where they are.
  static bool in_place(int64_t) { return false; }

  // count elements of a row.
  static void from_row(const Element* row, int64_t count, char* steps) {
    widen(row, 1, count, reinterpret_cast<float*>(steps));
  }
  static void zeros(int64_t count, char* steps) {
    __builtin_memset(steps, 0, static_cast<size_t>(count) * 4);
  }
  // One step for each of `count` columns; rows[0] is its row.
  static void from_rows(const Element* const* rows, int64_t column_stride, int64_t count,
                        char* steps) {
    widen(rows[0], column_stride, count, reinterpret_cast<float*>(steps));
  }
  // As from_rows of 32 contiguous columns, in two halves.
  static void from_32_columns(const Element* const* rows, char* first, char* second) {
    for (int64_t i = 0; i < 16; i += kLanes)
      store(reinterpret_cast<float*>(first) + i, load(rows[0] + i));
    for (int64_t i = 0; i < 16; i += kLanes)
      store(reinterpret_cast<float*>(second) + i, load(rows[0] + 16 + i));
  }
  // One step for each lane; vectors[d] is the step's number d.
  static void from_vectors(const F32* vectors, char* steps) {
    store(reinterpret_cast<float*>(steps), vectors[0]);
  }
  // Whether from_vectors rounds; from_rest then makes steps of what it left off.
  static constexpr bool kRounds = false;
  static void from_rest(const F32*, char*) {}
};

template <>
inline bool Steps<float, Fp32Operand>::in_place(int64_t) {
  return true;
}

#ifdef __AVX512BF16__
template <>
struct Steps<Bf16, Bf16PairOperand> {
  static bool in_place(int64_t depth) { return depth % 2 == 0; }

  static void from_row(const Bf16* row, int64_t count, char* steps) {
    __builtin_memcpy(steps, row, static_cast<size_t>(count) * 2);
    if (count % 2 != 0) __builtin_memset(steps + count * 2, 0, 2);
  }
  static void zeros(int64_t count, char* steps) {
    __builtin_memset(steps, 0, static_cast<size_t>(count) * 4);
  }
  static __m256i load_16(const Bf16* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static void from_32_columns(const Bf16* const* rows, char* first, char* second) {
    alignas(64) static constexpr uint16_t kOrder[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                        37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                        11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
    const __m512i order = _mm512_load_si512(kOrder);
    const __m512i x = _mm512_loadu_si512(rows[0]);
    const __m512i y = _mm512_loadu_si512(rows[1]);
    _mm512_storeu_si512(first, _mm512_permutex2var_epi16(x, order, y));
    const __m512i high = _mm512_add_epi16(order, _mm512_set1_epi16(16));
    _mm512_storeu_si512(second, _mm512_permutex2var_epi16(x, high, y));
  }
  // rows[1] may be null: zeros.
  static void from_rows(const Bf16* const* rows, int64_t column_stride, int64_t count,
                        char* steps) {
    uint32_t* out = reinterpret_cast<uint32_t*>(steps);
    const Bf16* even = rows[0];
    const Bf16* odd = rows[1];
    if (odd == nullptr) {
      for (int64_t i = 0; i < count; ++i) out[i] = even[i * column_stride].bits;
      return;
    }
    int64_t i = 0;
    if (column_stride == 1) {
      for (; i + 32 <= count; i += 32) {
        const Bf16* at[2] = {even + i, odd + i};
        from_32_columns(at, steps + i * 4, steps + (i + 16) * 4);
      }
      for (; i + 16 <= count; i += 16) {
        const __m512i x = _mm512_cvtepu16_epi32(load_16(even + i));
        const __m512i y = _mm512_cvtepu16_epi32(load_16(odd + i));
        _mm512_storeu_si512(out + i, _mm512_or_si512(x, _mm512_slli_epi32(y, 16)));
      }
    }
    for (; i < count; ++i) {
      out[i] = even[i * column_stride].bits | static_cast<uint32_t>(odd[i * column_stride].bits)
                                                  << 16;
    }
  }
  static constexpr bool kRounds = true;
  static void from_rest(const F32* vectors, char* steps) {
    char rounded[64];
    from_vectors(vectors, rounded);
    const __m512i pairs = _mm512_loadu_si512(rounded);
    const __m512i even = _mm512_slli_epi32(pairs, 16);
    const __m512i odd = _mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u)));
    const F32 rest[2] = {subtract(vectors[0], _mm512_castsi512_ps(even)),
                         subtract(vectors[1], _mm512_castsi512_ps(odd))};
    from_vectors(rest, steps);
  }
  static void from_vectors(const F32* vectors, char* steps) {
    const __m256i even = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(vectors[0]));
    const __m256i odd = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(vectors[1]));
    const __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16);
    _mm512_storeu_si512(steps, _mm512_or_si512(_mm512_cvtepu16_epi32(even), high));
  }
};
#endif

// How many steps `count` elements take.
template <class Operand>
inline int64_t steps_of(int64_t count) {
  return divide_up(count, Operand::kDepth);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_LEVEL
