// What is called of CANN besides the kernels themselves, found by name once per process.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/torch_npu.h>
#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <string>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

using AclStatus = int;
using AclDestroy = AclStatus (*)(const void*);

// Functions that this CANN does not have are null.
struct Cann {
  void* (*create_tensor)(const int64_t* sizes, uint64_t rank, int dtype, const int64_t* strides,
                         int64_t offset, int format, const int64_t* storage_sizes,
                         uint64_t storage_rank, void* storage);
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

// In one of the libraries of CANN's runtime, which torch_npu is linked to.
template <typename Function>
void find_in_runtime(const char* library_name, const char* name, Function& function) {
  void* library = dlopen(library_name, RTLD_LAZY | RTLD_NOLOAD);
  function = library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

inline Cann find_cann() {
  const auto find = [](const char* name, auto& function) {
    using Function = std::remove_reference_t<decltype(function)>;
    function = reinterpret_cast<Function>(torch_npu().find(name));
  };
  Cann api{};
  find("aclCreateTensor", api.create_tensor);
  find("aclCreateScalar", api.create_scalar);
  find("aclCreateIntArray", api.create_int_array);
  find("aclCreateFloatArray", api.create_float_array);
  find("aclCreateBoolArray", api.create_bool_array);
  find("aclCreateTensorList", api.create_tensor_list);
  find("aclDestroyTensor", api.destroy_tensor);
  find("aclDestroyScalar", api.destroy_scalar);
  find("aclDestroyIntArray", api.destroy_int_array);
  find("aclDestroyFloatArray", api.destroy_float_array);
  find("aclDestroyBoolArray", api.destroy_bool_array);
  find("aclDestroyTensorList", api.destroy_tensor_list);
  find("aclDestroyAclOpExecutor", api.destroy_executor);
  find("InitHugeMemThreadLocal", api.init_huge_memory);
  find("UnInitHugeMemThreadLocal", api.uninit_huge_memory);
  find("ReleaseHugeMem", api.release_huge_memory);
  find_in_runtime("libacl_op_compiler.so", "aclrtCtxGetSysParamOpt", api.context_option);
  find_in_runtime("libascendcl.so", "aclrtGetResInCurrentThread", api.thread_cores);
  find_in_runtime("libascendcl.so", "aclGetRecentErrMsg", api.recent_error);
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
  return reason;
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
