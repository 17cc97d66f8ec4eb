// The ranges of keys of one attention task, shared among threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace custom_pypto_sparse_attention {

// Its owner has the first range and takes more from the front, other threads from the back.
class RangeQueue {
 public:
  // It will be opened or closed soon.
  void prepare() { left_.store(kPreparing); }
  bool is_preparing() const { return left_.load() == kPreparing; }

  // Threads that take a range see what was written before. Range 0 is taken already.
  void open(std::int64_t ranges) {
    unfinished_.store(ranges);
    left_.store((static_cast<std::uint64_t>(ranges) << 32) + 1);
  }
  void close() { left_.store(0); }

  std::optional<std::int64_t> take_first() {
    const auto left = take([](std::uint64_t before) { return before + 1; });
    return left ? std::optional(begin_of(*left)) : std::nullopt;
  }
  std::optional<std::int64_t> take_last() {
    const auto left = take([](std::uint64_t before) { return before - kOneFromEnd; });
    return left ? std::optional(end_of(*left) - 1) : std::nullopt;
  }

  // Marks a range as attended to; true if none is unfinished now.
  bool finish() { return unfinished_.fetch_sub(1) == 1; }

 private:
  static constexpr std::uint64_t kOneFromEnd = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kPreparing = ~std::uint64_t{0};  // and no range is left

  // The ranges that were left before.
  template <class Take>
  std::optional<std::uint64_t> take(Take take) {
    std::uint64_t left = left_.load();
    while (begin_of(left) < end_of(left)) {
      if (left_.compare_exchange_weak(left, take(left))) return left;
    }
    return std::nullopt;
  }

  static std::int64_t begin_of(std::uint64_t left) {
    return static_cast<std::int64_t>(left & (kOneFromEnd - 1));
  }
  static std::int64_t end_of(std::uint64_t left) { return static_cast<std::int64_t>(left >> 32); }

  std::atomic<std::uint64_t> left_{0};  // the first, and the end
  std::atomic<std::int64_t> unfinished_{0};
};

}  // namespace custom_pypto_sparse_attention
