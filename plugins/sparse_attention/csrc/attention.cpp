// Attention on the CPU: which keys a row attends to, and the work divided among threads.
#include "attention.h"

#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto_blocks/divide.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/scratch.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <thread>

#include "cpu/attention_kernels.h"
#include "range_queue.h"

namespace custom_pypto_sparse_attention {

// The addresses of the latent and rope parts of a row's selected keys.
struct Attention::Keys {
  std::vector<const void*> latent;
  std::vector<const void*> rope;
};

// One row, or some of its heads, that a thread attends to, one range of keys after the other. When
// no row is left, other threads take ranges too, so that all finish together. The bits of the
// result do not depend on this.
class Attention::Job {
 public:
  // From now on, threads that come to help wait until the job begins or is given up.
  void prepare() { ranges_.prepare(); }
  bool is_preparing() const { return ranges_.is_preparing(); }
  void give_up() { ranges_.close(); }

  // Selects the task's keys and attends to them, as one of `workers` threads.
  void run(const Attention& attention, int64_t row, const AttendTask& task, int64_t workers);
  // Attends to remaining ranges, the last one first.
  void help();

 private:
  // Partial 0 is the merged ranges, 1 the range to merge next; then other threads' ranges, the last
  // one first.
  char* partial(int64_t index) const { return partials_ + index * partial_bytes_; }
  char* partial_of(int64_t range) const { return partial(1 + attend_ranges(task_.count) - range); }
  char* start();
  void finish() const;

  RangeQueue ranges_;
  AttendTask task_ = {};
  Keys keys_;
  Scratch memory_;
  char* partials_ = nullptr;
  int64_t partial_bytes_ = 0;
  int64_t merged_ = 0;  // ranges, the first ones
  const AttendKernels* kernels_ = nullptr;
};

Selection selection_of(const char* op, const AttentionArguments& a, const AttentionSizes& s) {
  using Layout = ops::npu_sparse_flash_attention::LayoutKv;
  const KeyLayout layout = s.layout_kv == Layout::PA_BSND ? KeyLayout::paged
                           : s.layout_kv == Layout::BSND  ? KeyLayout::bsnd
                                                          : KeyLayout::tnd;
  return Selection({op, layout, a.query, a.kv_cache, a.sparse_indices, a.block_table,
                    "actual_seq_lengths_query", a.actual_seq_lengths_query, "actual_seq_lengths_kv",
                    a.actual_seq_lengths_kv, a.sparse_mode});
}

Attention::Attention(const char* op, const AttentionArguments& a, const AttentionSizes& s)
    : op_(op),
      s_(s),
      element_(element_of(a.query.scalar_type())),
      query_(to_contiguous(a.query)),
      query_rope_(to_contiguous(a.query_rope)),
      kv_cache_(keys_of(op, "kv_cache", a.kv_cache)),
      kr_cache_(keys_of(op, "kr_cache", a.kr_cache)),
      selection_(selection_of(op, a, s)),
      scale_(static_cast<float>(a.scale)) {}

void Attention::select(int64_t row, Keys& keys) const {
  keys.latent.resize(static_cast<std::size_t>(s_.K));
  keys.rope.resize(static_cast<std::size_t>(s_.K));
  std::size_t selected = 0;
  selection_.for_each(row, [&](int64_t block, int64_t token) {
    keys.latent[selected] = kv_cache_.row(block, token);
    keys.rope[selected] = kr_cache_.row(block, token);
    ++selected;
  });
  keys.latent.resize(selected);
  keys.rope.resize(selected);
}

void Attention::run(const Tensor& out, float* log_sum_exp) const {
  if (s_.N1 == 0 || selection_.rows().empty()) return;
  const Output output{static_cast<char*>(out.mutable_data_ptr()), log_sum_exp};
  const int64_t threads = num_threads();
  const int64_t ranges = std::max<int64_t>(ranges_of_rows(threads), 1);
  const int64_t heads = heads_of_job(divide_up(threads, ranges));
  const int64_t jobs_of_row = divide_up(s_.N1, heads);
  const int64_t jobs = static_cast<int64_t>(selection_.rows().size()) * jobs_of_row;
  const int64_t workers = std::min(threads, ranges * jobs_of_row);
  thread_local std::unique_ptr<Job[]> kept;  // each worker's
  thread_local int64_t room = 0;
  if (room < workers) {
    kept = std::make_unique<Job[]>(static_cast<std::size_t>(workers));
    room = workers;
  }
  Job* const own = kept.get();
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> next_worker{0};
  parallel_for(0, workers, 1, [&](int64_t, int64_t) {
    Job& job = own[next_worker++];
    try {
      for (;;) {
        job.prepare();
        const int64_t index = next++;
        if (index >= jobs) break;
        const int64_t row = index / jobs_of_row;
        const int64_t first = index % jobs_of_row * heads;
        const AttendTask task = task_of(row, output, first, std::min(heads, s_.N1 - first));
        job.run(*this, row, task, workers);
      }
    } catch (...) {
      job.give_up();
      throw;
    }
    job.give_up();
    for (Job* other = own; other < own + workers; ++other) {
      while (other->is_preparing()) std::this_thread::yield();
      other->help();
    }
  });
}

int64_t Attention::ranges_of_rows(int64_t enough) const {
  int64_t ranges = 0;
  for (const Selection::Row& row : selection_.rows()) {
    ranges += attend_ranges(row.sequence < 0 ? 0 : std::clamp<int64_t>(row.visible, 0, s_.K));
    if (ranges >= enough) break;
  }
  return ranges;
}

int64_t Attention::heads_of_job(int64_t groups) const {
  const int64_t panel = kernels().attend_panel;
  const int64_t panels = divide_up(s_.N1, panel);
  return divide_up(panels, std::min(groups, panels)) * panel;
}

AttendTask Attention::task_of(int64_t row, const Output& output, int64_t first_head,
                              int64_t heads) const {
  const int64_t bytes = bytes_of(element_);
  const int64_t head = row * s_.N1 + first_head;
  AttendTask task = {};
  task.heads = heads;
  task.latent = s_.L;
  task.rope = s_.R;
  task.query = static_cast<const char*>(query_.const_data_ptr()) + head * s_.L * bytes;
  task.query_head_stride = s_.L;
  task.query_rope = static_cast<const char*>(query_rope_.const_data_ptr()) + head * s_.R * bytes;
  task.query_rope_head_stride = s_.R;
  task.scale = scale_;
  task.out = output.out + head * s_.L * bytes;
  task.out_head_stride = s_.L;
  task.log_sum_exp = output.log_sum_exp == nullptr ? nullptr : output.log_sum_exp + head;
  return task;
}

void Attention::write_nothing(const AttendTask& task) const {
  std::fill_n(static_cast<char*>(task.out), task.heads * s_.L * bytes_of(element_), char{0});
  if (task.log_sum_exp == nullptr) return;
  std::fill_n(task.log_sum_exp, task.heads, -std::numeric_limits<float>::infinity());
}

void Attention::Job::run(const Attention& attention, int64_t row, const AttendTask& task,
                         int64_t workers) {
  task_ = task;
  attention.select(row, keys_);
  task_.latent_rows = keys_.latent.data();
  task_.rope_rows = keys_.rope.data();
  task_.count = static_cast<int64_t>(keys_.latent.size());
  if (task_.count == 0) return attention.write_nothing(task_);
  kernels_ = &kernels().attend[static_cast<int>(attention.element_)];
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

void Attention::Job::help() {
  char* scratch = nullptr;
  while (const auto range = ranges_.take_last()) {
    if (scratch == nullptr) scratch = start();
    kernels_->run_range(task_, *range, partial_of(*range), scratch);
    if (ranges_.finish()) finish();
  }
}

char* Attention::Job::start() {
  char* scratch =
      Scratch::of_thread(kernels_->scratch_bytes(task_.heads, task_.latent, task_.rope));
  kernels_->start(task_, scratch);
  return scratch;
}

void Attention::Job::finish() const {
  for (int64_t range = merged_; range < attend_ranges(task_.count); ++range) {
    kernels_->merge(task_, partial(0), partial_of(range));
  }
  kernels_->write(task_, partial(0));
}

}  // namespace custom_pypto_sparse_attention
