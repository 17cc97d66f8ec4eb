// The functions of torch_npu that launches call: C++ functions with plain types, found in the
// loaded libtorch_npu.so when an NPU tensor first reaches an op. Plugins build and load without it.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/printable.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

static_assert(sizeof(std::string) == 32, "custom_pypto: torch_npu is built with the C++11 string");

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// Switches: environment variables that are 0 or 1.

// Launches use CANN's executor cache (executor_cache.h): off, unless it is 1.
inline constexpr const char* kExecutorCacheVariable = "CUSTOM_PYPTO_NPU_EXECUTOR_CACHE";
// Results are allocated as torch_npu's own ops allocate theirs (allocation.h): off, unless it is 1.
inline constexpr const char* kAllocationVariable = "CUSTOM_PYPTO_NPU_ALLOCATION";
// Launches are compared with the headers of opp packages (kernel_report.h): on, unless it is 0.
inline constexpr const char* kHeadersVariable = "CUSTOM_PYPTO_NPU_HEADERS";

// Whether the environment variable is 1, or what it is `otherwise` if it is unset. Throws
// std::runtime_error for values but 0 and 1.
inline bool is_switched_on(const char* variable, bool otherwise) {
  const char* text = std::getenv(variable);
  const std::string_view value = text == nullptr ? "" : text;
  if (value.empty()) return otherwise;
  if (value == "1") return true;
  if (value == "0") return false;
  throw std::runtime_error(std::string(variable) + " must be 0 or 1, got '" + printable(value) +
                           "'");
}

// CANN's opaque handles.
using AclTensor = void*;
using AclExecutor = void*;
using AclStream = void*;

struct TorchNpu {
  // The stream of the current device, without waiting for the task queue.
  AclStream (*stream)();
  // Runs the function on the current stream's task queue, or at once where there is none.
  void (*run)(const std::string& name, const std::function<int()>& function);
  // The address of a function of CANN's aclnn libraries; null when there is none.
  void* (*find)(const char* name);
  // A new aclTensor for the at::Tensor, in the storage format that it has on the device.
  AclTensor (*describe)(const void* tensor);
  // The storage format of the at::Tensor on an NPU, an aclFormat.
  int64_t (*storage_format)(const void* tensor);
  // The sizes of its storage in that format.
  std::vector<int64_t> (*storage_sizes)(const void* tensor);
  // The current TASK_QUEUE_ENABLE.
  uint32_t (*queue_setting)();
  // Applies the stream's core limits to the calling thread.
  void (*use_limits)(AclStream stream);
  // The level of determinism that was chosen; 0 when none was.
  uint32_t (*deterministic_level)();
  // Tells CANN the level.
  void (*apply_deterministic_level)(int64_t level, bool is_deterministic, bool is_aclnn);
  // Phase 2, with the workspace that torch_npu keeps for the stream; for the queue's thread.
  int (*run_with_workspace)(const void* phase_2, AclStream stream, uint64_t workspace_size,
                            AclExecutor executor);
};

namespace detail {

inline constexpr const char* torch_npu_library = "libtorch_npu.so";

inline TorchNpu find_torch_npu() {
  // RTLD_NOLOAD: torch_npu must have been initialised by Python, not merely be on the disk.
  if (dlopen(torch_npu_library, RTLD_LAZY | RTLD_NOLOAD) == nullptr) {
    throw std::runtime_error(
        "custom_pypto: torch_npu is not loaded, and nothing else can launch kernels on an NPU; "
        "install it (`pip install torch_npu==<version of torch>`) and `import torch_npu` before "
        "the first call of an op on an NPU");
  }
  TorchNpu api{};
  const auto fail = [&](const char* name) {
    const std::string path =
        custom_pypto::detail::library_path(reinterpret_cast<const void*>(api.stream));
    throw std::runtime_error("custom_pypto: the installed torch_npu (" +
                             (path.empty() ? torch_npu_library : path) + ") has no " + name +
                             ", which launching on an NPU needs; install torch_npu 2.10 or newer");
  };
  const auto find = [&](const char* mangled, const char* name, auto& function) {
    custom_pypto::detail::find_loaded(torch_npu_library, mangled, function);
    if (function == nullptr) fail(name);
  };
  find("_Z12GetAclStreamv", "GetAclStream", api.stream);
  find("_Z10RunAclCallRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKSt8functionIFivEE",
       "RunAclCall", api.run);
  find("_Z16GetOpApiFuncAddrPKc", "GetOpApiFuncAddr", api.find);
  find("_Z11ConvertTypeRKN2at6TensorE", "ConvertType(at::Tensor)", api.describe);
  find("_ZN6at_npu6native14get_npu_formatERKN2at6TensorE", "at_npu::native::get_npu_format",
       api.storage_format);
  find("_ZN6at_npu6native21get_npu_storage_sizesERKN2at6TensorE",
       "at_npu::native::get_npu_storage_sizes", api.storage_sizes);
  find("_Z23OpApiGetTaskQueueEnablev", "OpApiGetTaskQueueEnable", api.queue_setting);
  find("_Z19InitExecSubTheadCtxPv", "InitExecSubTheadCtx", api.use_limits);
  find("_ZN7c10_npu21GetDeterministicLevelEv", "GetDeterministicLevel", api.deterministic_level);
  find("_ZN6at_npu6native23ApplyDeterministicLevelElbb", "ApplyDeterministicLevel",
       api.apply_deterministic_level);
  find("_Z16ExecuteApiFuncV2PKvPvmP13aclOpExecutor", "ExecuteApiFuncV2", api.run_with_workspace);
  return api;
}

}  // namespace detail

// Throws std::runtime_error, which says what to do, as long as torch_npu is missing or too old.
inline const TorchNpu& torch_npu() {
  static const TorchNpu api = detail::find_torch_npu();
  return api;
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
