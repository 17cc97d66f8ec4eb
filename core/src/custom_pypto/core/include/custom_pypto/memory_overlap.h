// Whether strided tensors share memory: a question of bytes, for tensors whose addresses interleave
// as the K and V of one cache do. Exact where every stride of a tensor is at least the span of the
// elements that it repeats, as in a cache and its slices.
#pragma once

#include <custom_pypto/abi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

enum class Overlap { kNone, kPossible, kCertain };

// The bytes of a tensor with elements: runs of adjacent bytes, repeated level by level.
class ByteRuns {
 public:
  // `count` copies of what is inside, `stride` bytes apart.
  struct Level {
    int64_t stride;
    int64_t count;
    int64_t span;  // From the first byte of the first copy to behind the last byte of the last.
  };

  ByteRuns(const int64_t* sizes, const int64_t* strides, std::size_t ndim, int64_t element_size)
      : run_(element_size) {
    std::array<Level, kMostLevels> dims;
    std::size_t count = 0;
    for (std::size_t dim = 0; dim < ndim; ++dim) {
      if (sizes[dim] > 1 && strides[dim] != 0) {
        dims[count++] = {strides[dim] * element_size, sizes[dim], 0};
      }
    }
    std::sort(dims.begin(), dims.begin() + count,
              [](const Level& a, const Level& b) { return a.stride < b.stride; });
    for (std::size_t dim = 0; dim < count; ++dim) add(dims[dim].stride, dims[dim].count);
  }

  // Whether two elements may have a byte in common, copies of stride 0 apart.
  bool may_repeat() const { return may_repeat_; }
  // Whether the tensor has every byte of its runs.
  bool is_exact() const { return is_exact_; }
  std::size_t depth() const { return depth_; }
  // The outermost of the first `depth` levels.
  const Level& level(std::size_t depth) const { return levels_[depth - 1]; }
  // Of the first `depth` levels.
  int64_t span(std::size_t depth) const { return depth == 0 ? run_ : level(depth).span; }

 private:
  // A dimension of size 2 or more doubles the elements, whose number fits 64 bits.
  static constexpr std::size_t kMostLevels = 64;

  void add(int64_t stride, int64_t count) {
    const int64_t inside = span(depth_);
    const int64_t whole = (count - 1) * stride + inside;
    if (stride < inside) {
      // Copies that interleave or overlap become one run.
      may_repeat_ = true;
      is_exact_ = is_exact_ && depth_ == 0;
      depth_ = 0;
      run_ = whole;
    } else if (depth_ == 0 && stride == run_) {
      run_ = whole;
    } else if (depth_ > 0 && stride == level(depth_).stride * level(depth_).count) {
      levels_[depth_ - 1].count *= count;
      levels_[depth_ - 1].span = whole;
    } else {
      levels_[depth_++] = {stride, count, whole};
    }
  }

  int64_t run_;
  std::size_t depth_ = 0;
  std::array<Level, kMostLevels> levels_;  // The innermost first.
  bool may_repeat_ = false;
  bool is_exact_ = true;
};

// Each level can double the number of parts that are compared: an answer takes no longer than this.
inline constexpr int kMostComparisons = 256;

// Compares the first levels of `a` and `b`; `b` begins `shift` bytes behind `a`.
inline Overlap overlap_of_levels(const ByteRuns& a, std::size_t a_depth, const ByteRuns& b,
                                 std::size_t b_depth, int64_t shift, int& comparisons_left) {
  if (comparisons_left == 0) return Overlap::kPossible;
  --comparisons_left;
  const int64_t a_span = a.span(a_depth);
  const int64_t b_span = b.span(b_depth);
  if (shift >= a_span || -shift >= b_span) return Overlap::kNone;
  const Overlap found = a.is_exact() && b.is_exact() ? Overlap::kCertain : Overlap::kPossible;
  if (a_depth == 0 && b_depth == 0) return found;
  const int64_t a_stride = a_depth == 0 ? 0 : a.level(a_depth).stride;
  const int64_t b_stride = b_depth == 0 ? 0 : b.level(b_depth).stride;
  if (a_stride < b_stride) {
    return overlap_of_levels(b, b_depth, a, a_depth, -shift, comparisons_left);
  }
  const int64_t inside = a.span(a_depth - 1);
  const int64_t last = a.level(a_depth).count - 1;
  Overlap most = Overlap::kNone;
  if (a_stride == b_stride) {
    // A copy in `b` begins `first` + i * stride behind one in `a`; at most two of these distances
    // are less than a span.
    const int64_t other = b.span(b_depth - 1);
    const int64_t first = shift - last * a_stride;
    const int64_t begin = first > -other ? 0 : (-other - first) / a_stride + 1;
    const int64_t end = inside > first ? (inside - first - 1) / a_stride + 1 : 0;
    for (int64_t i = begin; i < std::min(end, last + b.level(b_depth).count); ++i) {
      most = std::max(most, overlap_of_levels(a, a_depth - 1, b, b_depth - 1, first + i * a_stride,
                                              comparisons_left));
    }
    return most;
  }
  // The copies in `a` that reach into the span of `b`.
  const int64_t begin = shift < inside ? 0 : (shift - inside) / a_stride + 1;
  const int64_t end = std::min(last, (shift + b_span - 1) / a_stride) + 1;
  if (end - begin > 2) return b_depth == 0 ? found : Overlap::kPossible;
  for (int64_t i = begin; i < end; ++i) {
    most = std::max(most, overlap_of_levels(a, a_depth - 1, b, b_depth, shift - i * a_stride,
                                            comparisons_left));
  }
  return most;
}

// Whether two tensors overlap; `b` begins `shift` bytes behind `a`.
inline Overlap overlap_of(const ByteRuns& a, const ByteRuns& b, int64_t shift) {
  int comparisons_left = kMostComparisons;
  return overlap_of_levels(a, a.depth(), b, b.depth(), shift, comparisons_left);
}

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
