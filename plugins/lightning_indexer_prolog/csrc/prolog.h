// The prolog on the CPU.
#pragma once

#include <custom_pypto/paged_cache.h>
#include <custom_pypto/projection.h>
#include <custom_pypto/rope.h>

#include <vector>

#include "ops.h"

namespace custom_pypto_lightning_indexer_prolog {

using Op = ops::npu_lightning_indexer_prolog_pto;

// Making one checks all values and writes nothing; run() fills the outputs and writes the caches.
class Prolog {
 public:
  // Throws std::runtime_error that names the argument. Borrows the arguments.
  Prolog(const Op::Arguments& arguments, const Op::Sizes& sizes);
  void run(const Op::Outputs& outputs) const;

 private:
  void fill_queries(const Op::Outputs& outputs) const;
  void fill_caches() const;
  void fill_weights(const Op::Outputs& outputs) const;
  custom_pypto::ConstRows x() const { return {x_.const_data_ptr(), s_.T, s_.H}; }

  const Op::Arguments& a_;
  const Op::Sizes& s_;
  custom_pypto::Tensor x_;
  custom_pypto::Tensor q_norm_;
  std::vector<float> token_scales_;   // [T]
  std::vector<float> column_scales_;  // [N * D]
  custom_pypto::Angles angles_;
  custom_pypto::PagedCache keys_;
  custom_pypto::PagedCache scales_;
  std::vector<int64_t> slots_;
};

}  // namespace custom_pypto_lightning_indexer_prolog
