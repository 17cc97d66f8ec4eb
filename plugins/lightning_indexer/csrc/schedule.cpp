// Divides a call into tasks, and runs them on threads.
#include "schedule.h"

#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace custom_pypto_lightning_indexer {
namespace {

// Ranks in memory at a time, in int32s (16 MiB), unless one row block needs more.
constexpr int64_t kRanksRoom = int64_t{1} << 22;
// The fewest multiplications that are worth waking another thread.
constexpr int64_t kWorthAThread = int64_t{1} << 23;
// The smallest task, in row-tokens: threads wait for each other that long at the end.
constexpr int64_t kSmallestTask = 512;

static_assert(kAlignment == kScratchAlignment);

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

int64_t useful_threads(int64_t multiplications) {
  const int64_t worth = 1 + multiplications / kWorthAThread;
  return worth == 1 ? 1 : std::min(worth, num_threads());
}

constexpr float kNoScore = -std::numeric_limits<float>::infinity();

// The score of a rank; cpu/rank.h has the inverse.
float score_of(int32_t rank) {
  const int32_t bits = rank ^ ((rank >> 31) & std::numeric_limits<int32_t>::max());
  float score;
  std::memcpy(&score, &bits, sizeof score);
  return score;
}

}  // namespace

void Selected::set_score(int64_t at, float score) const {
  if (score_element == Element::fp32) {
    static_cast<float*>(scores)[at] = score;
  } else {
    static_cast<BFloat16*>(scores)[at] = static_cast<BFloat16>(score);
  }
}

void Selected::clear(int64_t begin, int64_t end) const {
  std::fill(positions + begin, positions + end, -1);
  for (int64_t i = begin; scores != nullptr && i < end; ++i) set_score(i, kNoScore);
}

void Schedule::run(const Problem& problem, const Kernels& kernels, const Selected& out) {
  cut_rows(problem, out);
  if (blocks_.empty()) return;
  int64_t row_tokens = 0;
  for (const RowBlock& block : blocks_) row_tokens += block.work();
  const int64_t depth = blocks_.front().sequence->keys.depth;
  const int64_t workers = useful_threads(row_tokens * problem.group * depth);
  if (workers > 1) put_largest_first();
  cut_waves();
  prepare(problem, kernels, workers);
  for (const Wave& wave : waves_) {
    cut_tokens(wave, workers);
    parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        Worker mine = worker(index);
        work(problem, kernels, mine, out);
      }
    });
  }
}

// Cuts the rows that see a key into row blocks; the others' results are written at once.
void Schedule::cut_rows(const Problem& problem, const Selected& out) {
  blocks_.clear();
  const int64_t row_size = problem.key_heads * problem.sparse_count;
  int64_t done = 0;  // rows of the output that have their result or a block
  for (const Sequence& sequence : problem.sequences) {
    int64_t row = 0;
    while (row < sequence.rows && problem.visible(sequence, row) == 0) ++row;
    const int64_t first = sequence.first_row + row;
    if (row == sequence.rows) continue;
    out.clear(done * row_size, first * row_size);
    done = sequence.first_row + sequence.rows;
    for (; row < sequence.rows; row += kRowsPerBlock) {
      RowBlock block{};
      block.sequence = &sequence;
      block.first_row = row;
      block.rows = std::min(kRowsPerBlock, sequence.rows - row);
      for (int64_t r = 0; r < block.rows; ++r) {
        block.visible[r] = problem.visible(sequence, row + r);
      }
      block.tokens = block.visible[block.rows - 1];
      block.ranks_stride = round_up(block.tokens, kTokenBlock);
      for (block.key_head = 0; block.key_head < problem.key_heads; ++block.key_head) {
        blocks_.push_back(block);
      }
    }
  }
  out.clear(done * row_size, problem.rows * row_size);
}

// Leaves small blocks for the end: one thread does a row block's selection.
void Schedule::put_largest_first() {
  std::sort(blocks_.begin(), blocks_.end(), [](const RowBlock& a, const RowBlock& b) {
    if (a.work() != b.work()) return a.work() > b.work();
    // Key heads of the same rows stay neighbours: their keys may share cache lines.
    if (a.sequence != b.sequence) return a.sequence < b.sequence;
    if (a.first_row != b.first_row) return a.first_row < b.first_row;
    return a.key_head < b.key_head;
  });
}

void Schedule::cut_waves() {
  waves_.clear();
  Wave wave{0, 0};
  int64_t ranks = 0;
  for (RowBlock& block : blocks_) {
    const int64_t size = block.rows * block.ranks_stride;
    if (ranks > 0 && ranks + size > kRanksRoom) {
      waves_.push_back(wave);
      wave.first_block = wave.last_block;
      ranks = 0;
    }
    block.ranks_at = ranks;
    ranks += size;
    ++wave.last_block;
  }
  waves_.push_back(wave);
}

// Cuts a wave's row blocks into tasks: large while much is left, small towards the end, so that
// all threads finish together.
void Schedule::cut_tokens(const Wave& wave, int64_t workers) {
  tasks_.clear();
  wave_start_ = wave.first_block;
  next_task_.store(0, std::memory_order_relaxed);
  int64_t left = 0;
  for (int64_t i = wave.first_block; i < wave.last_block; ++i) {
    left += blocks_[static_cast<size_t>(i)].work();
  }
  for (int64_t i = wave.first_block; i < wave.last_block; ++i) {
    const RowBlock& block = blocks_[static_cast<size_t>(i)];
    int64_t count = 0;
    for (int64_t first = 0; first < block.tokens; ++count) {
      const int64_t size = workers == 1 ? left : std::max(kSmallestTask, left / (4 * workers));
      const int64_t tokens = round_up((size + block.rows - 1) / block.rows, kTokenBlock);
      const int64_t last = std::min(first + tokens, block.tokens);
      tasks_.push_back({i, first, last});
      left -= (last - first) * block.rows;
      first = last;
    }
    unfinished_[static_cast<size_t>(i - wave.first_block)].store(count, std::memory_order_relaxed);
  }
}

// Sets the scratch memory up: the ranks of a wave, then each worker's part.
void Schedule::prepare(const Problem& problem, const Kernels& kernels, int64_t workers) {
  const Keys& keys = blocks_.front().sequence->keys;
  int64_t rows = 0;
  int64_t tokens = 0;
  int64_t ranks = 0;
  int64_t most_blocks = 0;
  for (const RowBlock& block : blocks_) {
    rows = std::max(rows, block.rows);
    tokens = std::max(tokens, block.tokens);
    ranks = std::max(ranks, block.ranks_at + block.rows * block.ranks_stride);
  }
  for (const Wave& wave : waves_) {
    most_blocks = std::max(most_blocks, wave.last_block - wave.first_block);
  }
  if (most_blocks > unfinished_room_) {
    unfinished_ = std::make_unique<std::atomic<int64_t>[]>(static_cast<size_t>(most_blocks));
    unfinished_room_ = most_blocks;
  }
  packed_row_bytes_ = kernels.packed_row_bytes(keys, problem.group);
  score_bytes_ = kernels.score_scratch_bytes(keys);
  select_bytes_ = kernels.select_scratch_bytes(tokens);
  worker_bytes_ = packed_row_bytes_ * rows + score_bytes_ + select_bytes_;
  const int64_t ranks_bytes = ranks * static_cast<int64_t>(sizeof(int32_t));
  char* scratch = scratch_.reserve(static_cast<size_t>(ranks_bytes + workers * worker_bytes_));
  ranks_ = reinterpret_cast<int32_t*>(scratch);
  worker_scratch_ = scratch + ranks_bytes;
}

Schedule::Worker Schedule::worker(int64_t index) const {
  char* begin = worker_scratch_ + index * worker_bytes_;
  return {begin + score_bytes_ + select_bytes_, begin, begin + score_bytes_, -1};
}

void Schedule::work(const Problem& problem, const Kernels& kernels, Worker& worker,
                    const Selected& out) {
  const auto task_count = static_cast<int64_t>(tasks_.size());
  for (;;) {
    const int64_t index = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (index >= task_count) return;
    const Task& task = tasks_[static_cast<size_t>(index)];
    const RowBlock& block = blocks_[static_cast<size_t>(task.block)];
    pack(problem, kernels, task.block, worker);
    Keys keys = block.sequence->keys;
    keys.data += block.key_head * problem.key_head_stride * bytes_of(keys.element);
    Keys scales = block.sequence->key_scales;
    scales.data += block.key_head * problem.key_scale_head_stride * bytes_of(scales.element);
    ScoreRange range{};
    range.keys = &keys;
    range.heads = problem.group;
    range.packed = worker.packed;
    range.visible = block.visible;
    range.rows = block.rows;
    range.first = task.first;
    range.last = task.last;
    range.ranks = ranks_ + block.ranks_at;
    range.ranks_stride = block.ranks_stride;
    range.scratch = worker.score_scratch;
    range.scales = &scales;
    kernels.score(range);
    auto& unfinished = unfinished_[static_cast<size_t>(task.block - wave_start_)];
    if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      select(problem, kernels, block, worker, out);
    }
  }
}

void Schedule::pack(const Problem& problem, const Kernels& kernels, int64_t index,
                    Worker& worker) const {
  if (worker.packed_block == index) return;
  const RowBlock& block = blocks_[static_cast<size_t>(index)];
  const Sequence& sequence = *block.sequence;
  Query query = problem.query;
  const int64_t head = block.key_head * problem.group;
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t row = block.first_row + r;
    const int64_t at = row * problem.query_row_stride + head * query.head_stride;
    const int64_t weights_at = row * problem.weights_row_stride + head * query.weight_stride;
    query.data = sequence.query + at * bytes_of(query.element);
    query.weights = sequence.weights + weights_at * bytes_of(query.weight_element);
    const int64_t scales_at = row * problem.query_scale_row_stride + head * query.scale_stride;
    query.scales = sequence.query_scales + scales_at * bytes_of(query.scale_element);
    kernels.pack(sequence.keys, query, worker.packed + r * packed_row_bytes_);
  }
  worker.packed_block = index;
}

void Schedule::select(const Problem& problem, const Kernels& kernels, const RowBlock& block,
                      const Worker& worker, const Selected& out) const {
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t row = block.sequence->first_row + block.first_row + r;
    const int64_t at = (row * problem.key_heads + block.key_head) * problem.sparse_count;
    const int32_t* ranks = ranks_ + block.ranks_at + r * block.ranks_stride;
    int32_t* positions = out.positions + at;
    kernels.select(ranks, block.visible[r], problem.sparse_count, worker.select_scratch, positions);
    const int64_t selected = std::min(block.visible[r], problem.sparse_count);
    if (out.scores != nullptr) {
      for (int64_t i = 0; i < selected; ++i) out.set_score(at + i, score_of(ranks[positions[i]]));
      for (int64_t i = selected; i < problem.sparse_count; ++i) out.set_score(at + i, kNoScore);
    }
    if (problem.offsets.empty()) continue;
    const auto head = static_cast<size_t>(row * problem.key_heads + block.key_head);
    for (int64_t i = 0; i < selected; ++i) positions[i] += problem.offsets[head];
  }
}

}  // namespace custom_pypto_lightning_indexer
