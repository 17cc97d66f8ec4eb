// CANN's cache of executors, by keys of the caller (PTA: PyTorch adapter).
//
// Each thread has its own. Between InitPTACacheThreadLocal and UnInitPTACacheThreadLocal, the
// executors of phase 1 are added under the key of SetPTACacheHashKey, and are usable once phase 2
// has run. PTAFindExecCache returns one to a launch with an equal key, for the storages passed to
// AddTensorAddrToCachedList, in the order of the op's signature.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "custom_pypto_simulator/objects.h"

namespace custom_pypto_simulator {

// A cache entry. Several threads may use it at a time.
class CachedExecutor {
 public:
  // `op_name` is the name, by its address, that CanUsePTACache was called with.
  CachedExecutor(const aclOpExecutor& executor, const char* op_name);

  // Marks the entry as usable: phase 2 of its executor has succeeded.
  void mark_usable() { is_usable_ = true; }
  bool is_usable() const { return is_usable_; }
  const char* op_name() const { return op_name_; }

  // Sets `executor` up for these storages.
  void fill(aclOpExecutor& executor, const std::vector<void*>& storages) const;

 private:
  const char* op_name_;
  const char* name_;
  uint64_t workspace_;
  std::vector<aclTensor> tensors_;
  std::shared_ptr<PreparedOp> op_;
  std::atomic<bool> is_usable_{false};
};

// Adds `executor`, which phase 1 created in this thread, to the cache when a key is set.
void add_to_cache(aclOpExecutor& executor);

// A tensor's bytes when its storage is at `data`.
Extent extent_of(const aclTensor& tensor, const void* data);

}  // namespace custom_pypto_simulator
