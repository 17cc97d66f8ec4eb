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
};

#ifdef __AVX512BF16__
template <>
struct OperandOf<Bf16> {
  using Type = Bf16PairOperand;
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
  // One step for each lane of vectors.
  static void from_vectors(const F32* vectors, char* steps) {
    store(reinterpret_cast<float*>(steps), vectors[0]);
  }
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
      const __m512i low_order = _mm512_set_epi16(
          47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4,
          35, 3, 34, 2, 33, 1, 32, 0);
      const __m512i high_order = _mm512_add_epi16(low_order, _mm512_set1_epi16(16));
      for (; i + 32 <= count; i += 32) {
        const __m512i x = _mm512_loadu_si512(even + i);
        const __m512i y = _mm512_loadu_si512(odd + i);
        _mm512_storeu_si512(out + i, _mm512_permutex2var_epi16(x, low_order, y));
        _mm512_storeu_si512(out + i + 16, _mm512_permutex2var_epi16(x, high_order, y));
      }
      for (; i + 16 <= count; i += 16) {
        const __m512i x = _mm512_castsi256_si512(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(even + i)));
        const __m512i y = _mm512_castsi256_si512(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd + i)));
        _mm512_storeu_si512(out + i, _mm512_permutex2var_epi16(x, low_order, y));
      }
    }
    for (; i < count; ++i) {
      out[i] = even[i * column_stride].bits | static_cast<uint32_t>(odd[i * column_stride].bits)
                                                  << 16;
    }
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
