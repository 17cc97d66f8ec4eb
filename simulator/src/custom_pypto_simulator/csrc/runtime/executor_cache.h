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
struct CachedExecutor {
  const char* op_name;  // of CanUsePTACache; compared by address, as CANN does
  const char* name;
  uint64_t workspace;
  std::vector<aclTensor> tensors;
  std::shared_ptr<PreparedOp> op;
  std::atomic<bool> is_usable{false};  // phase 2 of its executor has succeeded
};

// Adds `executor`, which phase 1 created in this thread, to the cache when a key is set.
void add_to_cache(aclOpExecutor& executor);

// A tensor's bytes when its storage is at `data`.
Extent extent_of(const aclTensor& tensor, const void* data);

}  // namespace custom_pypto_simulator
