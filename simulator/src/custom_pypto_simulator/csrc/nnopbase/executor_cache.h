// CANN's cache of executors, by keys that the caller makes (PTA: PyTorch adapter).
//
// Each thread has its own. Between InitPTACacheThreadLocal and UnInitPTACacheThreadLocal, what
// phase 1 makes is added under the key that SetPTACacheHashKey named, and is usable once phase 2
// has run. PTAFindExecCache gives it to a launch with an equal key, as an executor for the storages
// that AddTensorAddrToCachedList was given, in the order of the op's signature.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "custom_pypto_simulator/objects.h"

namespace custom_pypto_simulator {

// What the cache has of an executor. It may be used by several threads at a time.
class CachedExecutor {
 public:
  // `asked_as` is the name, by its address, that CanUsePTACache was asked with.
  CachedExecutor(const aclOpExecutor& executor, const char* asked_as);

  // Phase 2 of the executor that this was made of has succeeded.
  void allow() { is_usable_ = true; }
  bool is_usable() const { return is_usable_; }
  const char* asked_as() const { return asked_as_; }

  // Makes `executor` one for these storages.
  void fill(aclOpExecutor& executor, const std::vector<void*>& storages) const;

 private:
  const char* asked_as_;
  const char* name_;
  uint64_t workspace_;
  std::vector<aclTensor> tensors_;
  std::shared_ptr<PreparedOp> op_;
  std::atomic<bool> is_usable_{false};
};

// Phase 1 has made `executor` in this thread: adds it to the cache when a key is set.
void add_to_cache(aclOpExecutor& executor);

// A tensor's bytes when its storage is at `data`.
Extent extent_of(const aclTensor& tensor, const void* data);

}  // namespace custom_pypto_simulator
