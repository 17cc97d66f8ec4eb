// Attention of many rows, each to keys of its own, divided among threads.
#pragma once

#include <custom_pypto/parallel.h>
#include <custom_pypto_blocks/divide.h>
#include <custom_pypto_blocks/scratch.h>
#include <custom_pypto_sparse_attention/attend_task.h>
#include <custom_pypto_sparse_attention/range_queue.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace custom_pypto_sparse_attention {

// The addresses of the latent and rope parts of a row's keys.
struct Keys {
  std::vector<const void*> latent;
  std::vector<const void*> rope;
};

// The rows of a call, one for each query token.
class AttendRows {
 public:
  virtual int64_t count() const = 0;
  // No row has more keys than this says.
  virtual int64_t most_keys(int64_t row) const = 0;
  virtual void select(int64_t row, Keys& keys) const = 0;
  // A task for some heads of a row, without its keys.
  virtual AttendTask task(int64_t row, int64_t first_head, int64_t heads) const = 0;

 protected:
  ~AttendRows() = default;
};

// How rows are attended to: `heads` heads of elements of a size, by the kernels of their dtype,
// which compute `panel` heads side by side.
struct AttendMethod {
  const AttendKernels& kernels;
  int64_t panel;
  int64_t heads;
  int64_t element_bytes;
};

namespace detail {

// One row, or some of its heads, that a thread attends to, one range of keys after the other. When
// no row is left, other threads take ranges too, so that all finish together. The bits of the
// result do not depend on this.
class AttendJob {
 public:
  // From now on, threads that come to help wait until the job begins or is given up.
  void prepare() { ranges_.prepare(); }
  bool is_preparing() const { return ranges_.is_preparing(); }
  void give_up() { ranges_.close(); }

  // Selects the task's keys and attends to them, as one of `workers` threads.
  void run(const AttendRows& rows, const AttendMethod& method, int64_t row, const AttendTask& task,
           int64_t workers) {
    task_ = task;
    rows.select(row, keys_);
    task_.latent_rows = keys_.latent.data();
    task_.rope_rows = keys_.rope.data();
    task_.count = static_cast<int64_t>(keys_.latent.size());
    if (task_.count == 0) return write_nothing(method.element_bytes);
    kernels_ = &method.kernels;
    partial_bytes_ = kernels_->partial_bytes(task_.heads, task_.latent);
    const int64_t ranges = attend_ranges(task_.count);
    const int64_t partials = 1 + (workers > 1 ? ranges : std::min<int64_t>(ranges - 1, 1));
    partials_ = memory_.reserve(static_cast<std::size_t>(partials * partial_bytes_));
    ranges_.open(ranges);
    char* scratch = start();
    kernels_->run_range(task_, 0, partial(0), scratch);
    merged_ = 1;
    bool is_last = ranges_.finish();
    while (const auto range = ranges_.take_first()) {
      kernels_->run_range(task_, *range, partial(1), scratch);
      kernels_->merge(task_, partial(0), partial(1));
      ++merged_;
      is_last = ranges_.finish();
    }
    if (is_last) finish();
  }

  // Attends to remaining ranges, the last one first.
  void help() {
    char* scratch = nullptr;
    while (const auto range = ranges_.take_last()) {
      if (scratch == nullptr) scratch = start();
      kernels_->run_range(task_, *range, partial_of(*range), scratch);
      if (ranges_.finish()) finish();
    }
  }

 private:
  // Partial 0 is the merged ranges, 1 the range to merge next; then other threads' ranges, the last
  // one first.
  char* partial(int64_t index) const { return partials_ + index * partial_bytes_; }
  char* partial_of(int64_t range) const { return partial(1 + attend_ranges(task_.count) - range); }

  char* start() {
    char* scratch = custom_pypto::Scratch::of_thread(
        kernels_->scratch_bytes(task_.heads, task_.latent, task_.rope));
    kernels_->start(task_, scratch);
    return scratch;
  }

  void finish() const {
    for (int64_t range = merged_; range < attend_ranges(task_.count); ++range) {
      kernels_->merge(task_, partial(0), partial_of(range));
    }
    kernels_->write(task_, partial(0));
  }

  void write_nothing(int64_t element_bytes) const {
    std::fill_n(static_cast<char*>(task_.out), task_.heads * task_.latent * element_bytes, char{0});
    if (task_.log_sum_exp == nullptr) return;
    std::fill_n(task_.log_sum_exp, task_.heads, -std::numeric_limits<float>::infinity());
  }

  RangeQueue ranges_;
  AttendTask task_ = {};
  Keys keys_;
  custom_pypto::Scratch memory_;
  char* partials_ = nullptr;
  int64_t partial_bytes_ = 0;
  int64_t merged_ = 0;  // ranges, the first ones
  const AttendKernels* kernels_ = nullptr;
};

// The ranges of keys of all rows together; stops counting at `enough`.
inline int64_t ranges_of_rows(const AttendRows& rows, int64_t enough) {
  int64_t ranges = 0;
  for (int64_t row = 0; row < rows.count() && ranges < enough; ++row) {
    ranges += attend_ranges(rows.most_keys(row));
  }
  return ranges;
}

// The heads of a job, when a row's heads are divided into up to `groups` groups of whole panels.
inline int64_t heads_of_job(const AttendMethod& method, int64_t groups) {
  const int64_t panels = custom_pypto::divide_up(method.heads, method.panel);
  return custom_pypto::divide_up(panels, std::min(groups, panels)) * method.panel;
}

}  // namespace detail

// Attends to the keys of every row. A row without keys gets zeros, and -inf as its log-sum-exp.
inline void attend(const AttendRows& rows, const AttendMethod& method) {
  using detail::AttendJob;
  if (method.heads == 0 || rows.count() == 0) return;
  const int64_t threads = custom_pypto::num_threads();
  const int64_t ranges = std::max<int64_t>(detail::ranges_of_rows(rows, threads), 1);
  const int64_t heads = detail::heads_of_job(method, custom_pypto::divide_up(threads, ranges));
  const int64_t jobs_of_row = custom_pypto::divide_up(method.heads, heads);
  const int64_t jobs = rows.count() * jobs_of_row;
  const int64_t workers = std::min(threads, ranges * jobs_of_row);
  thread_local std::unique_ptr<AttendJob[]> kept;  // each worker's
  thread_local int64_t room = 0;
  if (room < workers) {
    kept = std::make_unique<AttendJob[]>(static_cast<std::size_t>(workers));
    room = workers;
  }
  AttendJob* const own = kept.get();
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> next_worker{0};
  custom_pypto::parallel_for(0, workers, 1, [&](int64_t, int64_t) {
    AttendJob& job = own[next_worker++];
    try {
      for (;;) {
        job.prepare();
        const int64_t index = next++;
        if (index >= jobs) break;
        const int64_t row = index / jobs_of_row;
        const int64_t first = index % jobs_of_row * heads;
        const AttendTask task = rows.task(row, first, std::min(heads, method.heads - first));
        job.run(rows, method, row, task, workers);
      }
    } catch (...) {
      job.give_up();
      throw;
    }
    job.give_up();
    for (AttendJob* other = own; other < own + workers; ++other) {
      while (other->is_preparing()) std::this_thread::yield();
      other->help();
    }
  });
}

}  // namespace custom_pypto_sparse_attention
