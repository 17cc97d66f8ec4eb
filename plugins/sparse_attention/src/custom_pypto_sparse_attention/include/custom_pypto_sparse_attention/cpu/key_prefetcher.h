// Prefetches selected keys while earlier ones are multiplied.
#pragma once

#include <custom_pypto_sparse_attention/attend_task.h>

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

// Selected keys are scattered, so the hardware prefetcher predicts neither their cache lines nor
// their pages. The first line of several keys is prefetched at once: each waits for a TLB miss, and
// many misses at a time take little longer than one. The other lines follow two by two, since all
// at once would delay the loads of the tile that is being multiplied.
template <class Element>
class KeyPrefetcher {
 public:
  explicit KeyPrefetcher(const custom_pypto_sparse_attention::AttendTask& task)
      : task_(task),
        latent_bytes_(task.latent * static_cast<int64_t>(sizeof(Element))),
        bytes_(latent_bytes_ + task.rope * static_cast<int64_t>(sizeof(Element))) {}

  // Starts at key `key`.
  void begin(int64_t key) { key_ = end_ = key; }

  // Adds the keys before `key`, and prefetches their first lines.
  void until(int64_t key) {
    for (; end_ < (key < task_.count ? key : task_.count); ++end_) {
      prefetch_line(task_.latent_rows[end_], 0);
      prefetch_line(task_.rope_rows[end_], 0);
    }
  }

  bool is_behind() const { return key_ < end_; }

  inline void advance() {
    if (key_ >= end_) return;
    const bool is_latent = offset_ < latent_bytes_;
    const void* row = (is_latent ? task_.latent_rows : task_.rope_rows)[key_];
    const int64_t at = offset_ - (is_latent ? 0 : latent_bytes_);
    prefetch_line(row, at);
    prefetch_line(row, at + 64);
    offset_ += 128;
    if (offset_ >= bytes_) {
      offset_ = 0;
      ++key_;
    }
  }

 private:
  static void prefetch_line(const void* row, int64_t offset) {
    __builtin_prefetch(static_cast<const char*>(row) + offset, 0, 3);
  }

  const custom_pypto_sparse_attention::AttendTask& task_;
  int64_t latent_bytes_;
  int64_t bytes_;
  int64_t key_ = 0;
  int64_t offset_ = 0;
  int64_t end_ = 0;
};

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
