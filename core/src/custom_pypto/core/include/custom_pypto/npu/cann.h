// The functions of CANN that launches call beside the kernels, found by name once per process, and
// ownership of the objects that they make.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/npu/torch_npu.h>

#include <cstdint>
#include <memory>
#include <string>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

using AclStatus = int;
using AclDestroy = AclStatus (*)(const void*);

// Functions that this CANN does not have are null.
struct Cann {
  void* (*create_tensor)(const int64_t* sizes, uint64_t ndim, int dtype, const int64_t* strides,
                         int64_t offset, int format, const int64_t* storage_sizes,
                         uint64_t storage_ndim, void* storage);
  void* (*create_scalar)(const void* value, int dtype);
  void* (*create_int_array)(const int64_t* values, uint64_t count);
  void* (*create_float_array)(const float* values, uint64_t count);
  void* (*create_bool_array)(const bool* values, uint64_t count);
  void* (*create_tensor_list)(const AclTensor* tensors, uint64_t count);
  AclDestroy destroy_tensor;
  AclDestroy destroy_scalar;
  AclDestroy destroy_int_array;
  AclDestroy destroy_float_array;
  AclDestroy destroy_bool_array;
  AclDestroy destroy_tensor_list;  // and the tensors in it
  AclDestroy destroy_executor;
  // The thread's arena for what phase 1 allocates.
  AclStatus (*init_huge_memory)(void*, bool);
  void (*uninit_huge_memory)(void*, bool);
  void (*release_huge_memory)(void*, bool);
  // An option of the calling thread's context.
  AclStatus (*context_option)(int option, int64_t* value);
  // How many cores of a kind the calling thread's launches may use.
  AclStatus (*thread_cores)(int kind, uint32_t* count);
  // Why the last call in this thread failed; reading it clears it.
  const char* (*recent_error)();
};

namespace detail {

// Sets `function` to null when the aclnn libraries have no such function.
template <typename Function>
void find_in_aclnn(const char* name, Function& function) {
  function = reinterpret_cast<Function>(torch_npu().find(name));
}

inline Cann find_cann() {
  using custom_pypto::detail::find_loaded;
  Cann api{};
  find_in_aclnn("aclCreateTensor", api.create_tensor);
  find_in_aclnn("aclCreateScalar", api.create_scalar);
  find_in_aclnn("aclCreateIntArray", api.create_int_array);
  find_in_aclnn("aclCreateFloatArray", api.create_float_array);
  find_in_aclnn("aclCreateBoolArray", api.create_bool_array);
  find_in_aclnn("aclCreateTensorList", api.create_tensor_list);
  find_in_aclnn("aclDestroyTensor", api.destroy_tensor);
  find_in_aclnn("aclDestroyScalar", api.destroy_scalar);
  find_in_aclnn("aclDestroyIntArray", api.destroy_int_array);
  find_in_aclnn("aclDestroyFloatArray", api.destroy_float_array);
  find_in_aclnn("aclDestroyBoolArray", api.destroy_bool_array);
  find_in_aclnn("aclDestroyTensorList", api.destroy_tensor_list);
  find_in_aclnn("aclDestroyAclOpExecutor", api.destroy_executor);
  find_in_aclnn("InitHugeMemThreadLocal", api.init_huge_memory);
  find_in_aclnn("UnInitHugeMemThreadLocal", api.uninit_huge_memory);
  find_in_aclnn("ReleaseHugeMem", api.release_huge_memory);
  find_loaded("libacl_op_compiler.so", "aclrtCtxGetSysParamOpt", api.context_option);
  find_loaded("libascendcl.so", "aclrtGetResInCurrentThread", api.thread_cores);
  find_loaded("libascendcl.so", "aclGetRecentErrMsg", api.recent_error);
  return api;
}

}  // namespace detail

inline const Cann& cann() {
  static const Cann api = detail::find_cann();
  return api;
}

// Why the last call of CANN in this thread failed, on one line; "" when CANN does not say.
inline std::string recent_error() {
  const char* text = cann().recent_error == nullptr ? nullptr : cann().recent_error();
  std::string reason = text == nullptr ? "" : text;
  while (!reason.empty() && (reason.back() == '\n' || reason.back() == ' ')) reason.pop_back();
  for (char& c : reason) c = c == '\n' ? ' ' : c;
  return printable(reason);
}

struct DestroyAclObject {
  AclDestroy destroy;
  void operator()(void* object) const noexcept {
    if (destroy != nullptr) destroy(object);
  }
};
// Owns one of CANN's objects, or none.
using AclObject = std::unique_ptr<void, DestroyAclObject>;

// The thread's arena for the allocations of phase 1, to the end of the scope. There CANN only
// forgets the arena: whoever runs phase 2 frees its memory.
class HugeMemory {
 public:
  HugeMemory() {
    if (cann().init_huge_memory != nullptr) cann().init_huge_memory(nullptr, false);
  }
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;
  ~HugeMemory() {
    if (!is_handed_over_) release();
    if (cann().uninit_huge_memory != nullptr) cann().uninit_huge_memory(nullptr, false);
  }

  // Phase 2 frees it from now on.
  void hand_over() noexcept { is_handed_over_ = true; }

  // Frees the memory of the thread's last phase 2 or last destroyed executor.
  static void release() noexcept {
    if (cann().release_huge_memory != nullptr) cann().release_huge_memory(nullptr, false);
  }

 private:
  bool is_handed_over_ = false;
};

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
