// The opaque types of the aclnn interface, as the simulator represents them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "acl/acl.h"

// Destroyed objects go to a pool, never to the system, so that `alive` can still be read.
struct aclTensor {
  bool alive = false;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::vector<int64_t> storage_shape;
  int64_t offset = 0;  // in elements
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  void* data = nullptr;  // of the storage: element 0 of the tensor is `offset` further on
};

struct aclScalar {
  bool alive = false;
  aclDataType dtype = ACL_DT_UNDEFINED;
  alignas(16) unsigned char value[16] = {};
};

namespace custom_pypto_simulator {

template <class Value>
struct ArrayOf {
  bool alive = false;
  std::vector<Value> values;
};

}  // namespace custom_pypto_simulator

struct aclIntArray : custom_pypto_simulator::ArrayOf<int64_t> {};
struct aclFloatArray : custom_pypto_simulator::ArrayOf<float> {};
struct aclBoolArray : custom_pypto_simulator::ArrayOf<bool> {};
struct aclTensorList : custom_pypto_simulator::ArrayOf<const aclTensor*> {};

namespace custom_pypto_simulator {

// The memory that a kernel may access through a tensor.
struct Extent {
  const char* begin;
  size_t bytes;
};

// An op with its arguments, from phase 1 to phase 2.
class PreparedOp {
 public:
  PreparedOp() = default;
  PreparedOp& operator=(const PreparedOp&) = delete;
  virtual ~PreparedOp() = default;

  // On the stream, with the workspace; throws or succeeds. May run again in a captured graph.
  virtual void run(void* workspace, uint64_t bytes) = 0;

  // The same op on the storages at `addresses`, one for each tensor in the order of the signature.
  // Null for an op that cannot be launched again like that.
  virtual std::shared_ptr<PreparedOp> with_storages(void* const* addresses) const = 0;

 protected:
  PreparedOp(const PreparedOp&) = default;
};

// Arguments of phase 1 that must not change until phase 2 begins.
struct WatchedArguments {
  std::vector<const aclTensor*> tensors;
  // Whether an array, a scalar or a string is unchanged.
  std::vector<std::function<bool()>> others;
};

struct CachedExecutor;
class Arena;

}  // namespace custom_pypto_simulator

// An executor: created by phase 1, run by phase 2.
struct aclOpExecutor {
  bool alive = false;
  const char* name = "";
  uint64_t workspace = 0;
  // The arena that phase 1 allocated it from; null without one.
  std::shared_ptr<custom_pypto_simulator::Arena> arena;
  // Empty when the executor came from the cache.
  custom_pypto_simulator::WatchedArguments watched;
  std::vector<custom_pypto_simulator::Extent> extents;
  std::shared_ptr<custom_pypto_simulator::PreparedOp> op;
  // Its cache entry, which phase 2 makes usable.
  std::shared_ptr<custom_pypto_simulator::CachedExecutor> cached;
  // Why phase 2 must fail; empty if it need not.
  std::string refusal;
};

namespace custom_pypto_simulator {

// Status codes of aclnn functions.
constexpr int kParameterNull = 161001;
constexpr int kParameterInvalid = 161002;
constexpr int kInnerError = 561000;
constexpr int kNullExecutor = 561101;
constexpr int kSmallWorkspace = 561103;

}  // namespace custom_pypto_simulator

extern "C" {

// Phase 1 of op `name`, a static string, succeeded: `watched` and `op` are moved into the
// executor, which lives until phase 2 or aclDestroyAclOpExecutor.
int custom_pypto_sim_make_executor(const char* name, uint64_t workspace,
                                   custom_pypto_simulator::WatchedArguments* watched,
                                   std::shared_ptr<custom_pypto_simulator::PreparedOp>* op,
                                   uint64_t* workspace_size, aclOpExecutor** executor);

// Phase 2 of op `name`.
int custom_pypto_sim_launch(const char* name, void* workspace, uint64_t workspace_size,
                            aclOpExecutor* executor, aclrtStream stream);
}
