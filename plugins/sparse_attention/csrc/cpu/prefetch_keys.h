// Asks for the memory of selected keys while earlier ones are computed with.
#pragma once

#include "kernels.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// Selected keys lie anywhere, so the processor foresees neither their lines nor their pages. The
// first line of each of some keys is asked for at once: asking waits for the page's translation,
// and many translations at a time take little longer than one. The other lines follow two by two,
// since all at once would hold up the loads of the tile that is computed.
template <class Element>
class PrefetchKeys {
 public:
  explicit PrefetchKeys(const custom_pypto_sparse_attention::AttendTask& task)
      : task_(task),
        latent_bytes_(task.latent * static_cast<int64_t>(sizeof(Element))),
        bytes_(latent_bytes_ + task.rope * static_cast<int64_t>(sizeof(Element))) {}

  // From key `key` on.
  void begin(int64_t key) { key_ = end_ = key; }

  // Up to key `key`.
  void until(int64_t key) {
    for (; end_ < (key < task_.count ? key : task_.count); ++end_) {
      ask(task_.latent_rows[end_], 0);
      ask(task_.rope_rows[end_], 0);
    }
  }

  bool is_behind() const { return key_ < end_; }

  inline void advance() {
    if (key_ >= end_) return;
    const bool is_latent = offset_ < latent_bytes_;
    const void* row = (is_latent ? task_.latent_rows : task_.rope_rows)[key_];
    const int64_t at = offset_ - (is_latent ? 0 : latent_bytes_);
    ask(row, at);
    ask(row, at + 64);
    offset_ += 128;
    if (offset_ >= bytes_) {
      offset_ = 0;
      ++key_;
    }
  }

 private:
  static void ask(const void* row, int64_t offset) {
    __builtin_prefetch(static_cast<const char*>(row) + offset, 0, 3);
  }

  const custom_pypto_sparse_attention::AttendTask& task_;
  int64_t latent_bytes_;
  int64_t bytes_;
  int64_t key_ = 0;
  int64_t offset_ = 0;
  int64_t end_ = 0;
};

// For multiply_tile.
template <class Element>
struct AskForKeys {
  PrefetchKeys<Element>* keys;
  inline void advance() { keys->advance(); }
};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
