// The work of one call, cut up for several threads.
//
// A row block is some neighbouring rows of one sequence under one key head: they read the same
// keys. Threads that are free compute its scores, range of tokens by range of tokens; the thread
// that finishes the last range selects. The bits of the result do not depend on this.
#pragma once

#include <custom_pypto_blocks/scratch.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/indexer_kernels.h"
#include "problem.h"

namespace custom_pypto_lightning_indexer {

// Where the results go: problem.rows * problem.key_heads rows of problem.sparse_count numbers each.
struct Selected {
  int32_t* positions;
  void* scores = nullptr;                 // of the positions, -inf for none; may be null
  Element score_element = Element::fp32;  // or bf16

  void clear(int64_t begin, int64_t end) const;
  void set_score(int64_t at, float score) const;
};

class Schedule {
 public:
  void run(const Problem& problem, const Kernels& kernels, const Selected& out);

 private:
  static constexpr int64_t kRowsPerBlock = 8;

  struct RowBlock {
    const Sequence* sequence;
    int64_t key_head;
    int64_t first_row;  // of the sequence
    int64_t rows;
    int64_t tokens;        // that its last row sees: the most
    int64_t ranks_stride;  // int32s from one row's ranks to the next one's
    int64_t ranks_at;      // where its ranks begin, in int32s
    int64_t visible[kRowsPerBlock];

    int64_t work() const { return rows * tokens; }
  };

  struct Task {
    int64_t block;
    int64_t first;
    int64_t last;
  };

  // A run of row blocks whose ranks fit the memory set aside for ranks.
  struct Wave {
    int64_t first_block;
    int64_t last_block;
  };

  // One thread's part of the scratch memory.
  struct Worker {
    char* packed;
    char* score_scratch;
    char* select_scratch;
    int64_t packed_block;  // whose rows `packed` holds, or -1
  };

  void cut_rows(const Problem& problem, const Selected& out);
  void put_largest_first();
  void cut_waves();
  void cut_tokens(const Wave& wave, int64_t workers);
  void prepare(const Problem& problem, const Kernels& kernels, int64_t workers);
  Worker worker(int64_t index) const;
  void work(const Problem& problem, const Kernels& kernels, Worker& worker, const Selected& out);
  void pack(const Problem& problem, const Kernels& kernels, int64_t block, Worker& worker) const;
  void select(const Problem& problem, const Kernels& kernels, const RowBlock& block,
              const Worker& worker, const Selected& out) const;

  std::vector<RowBlock> blocks_;
  std::vector<Wave> waves_;
  std::vector<Task> tasks_;
  std::unique_ptr<std::atomic<int64_t>[]> unfinished_;  // tasks, per row block of the wave
  int64_t unfinished_room_ = 0;
  int64_t wave_start_ = 0;
  std::atomic<int64_t> next_task_{0};

  Scratch scratch_;
  int32_t* ranks_ = nullptr;
  char* worker_scratch_ = nullptr;
  int64_t packed_row_bytes_ = 0;
  int64_t score_bytes_ = 0;
  int64_t select_bytes_ = 0;
  int64_t worker_bytes_ = 0;
};

}  // namespace custom_pypto_lightning_indexer
