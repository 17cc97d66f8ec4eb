// Launches of two-phase aclnn kernels.
//
//   #include <custom_pypto/npu/launch.h>
//
//   Tensor my_op_npu(const Tensor& x, double scale) {
//     Tensor out = custom_pypto::empty_like_contiguous(x);
//     EXEC_NPU_CMD(aclnnMyOp, x, scale, out);
//     return out;
//   }
//
// Pass the arguments of aclnnMyOpGetWorkspaceSize, outputs too, without the last two, which
// every aclnn function has. argument.h lists their types.
//
// Phase 2 goes through torch_npu's task queue. So does phase 1 with TASK_QUEUE_ENABLE=2, as in
// torch_npu's own ops; else it runs in the caller's thread, and its errors are raised there. The
// launch is on the current stream of the tensors' device; nothing waits for the device.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/allocation.h>
#include <custom_pypto/npu/argument.h>
#include <custom_pypto/npu/cann.h>
#include <custom_pypto/npu/executor_cache.h>
#include <custom_pypto/npu/kernel_report.h>
#include <custom_pypto/npu/task.h>
#include <custom_pypto/npu/torch_npu.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {
namespace detail {

// torch.are_deterministic_algorithms_enabled(); false when this torch keeps it elsewhere.
inline bool wants_deterministic_algorithms() {
  struct Context {
    void* (*global)();
    bool (*is_deterministic)(const void* context);
  };
  static const Context context = [] {
    Context found{};
    custom_pypto::detail::find_in_torch("_ZN2at13globalContextEv", found.global);
    custom_pypto::detail::find_in_torch("_ZNK2at7Context23deterministicAlgorithmsEv",
                                        found.is_deterministic);
    return found;
  }();
  return context.global != nullptr && context.is_deterministic != nullptr &&
         context.is_deterministic(context.global());
}

// The level of determinism that kernels need: 0 for none, else torch_npu's.
inline int64_t deterministic_level() {
  if (!wants_deterministic_algorithms()) return 0;
  const uint32_t level = torch_npu().deterministic_level();
  return level == 0 ? 1 : level;
}

// Sets CANN's level, as torch_npu does before each of its own ops: phase 1 chooses by the level in
// the context of the calling thread, which belongs to one device.
inline void apply_deterministic_level(int64_t level) {
  constexpr int kDeterministic = 0;  // ACL_OPT_DETERMINISTIC
  int64_t current = -1;
  const auto option = cann().context_option;
  const bool is_off = option != nullptr && option(kDeterministic, &current) == 0 && current == 0;
  if (level != 0 || !is_off) torch_npu().apply_deterministic_level(level, level != 0, true);
}

enum class Phase { prepare, run };

CUSTOM_PYPTO_COLD inline std::string failure_text(const Kernel& kernel, Phase phase,
                                                  AclStatus code) {
  const std::string reason = recent_error();
  return kernel.title + " failed in phase " + (phase == Phase::prepare ? "1 (" : "2 (") +
         kernel.symbol + (phase == Phase::prepare ? "GetWorkspaceSize" : "") + ") with code " +
         std::to_string(code) + ": " + (reason.empty() ? "CANN gives no reason" : reason) +
         " (the kernel is " + kernel.library + ", from " + origin_name(kernel.origin) + ")";
}

CUSTOM_PYPTO_COLD inline std::string no_workspace_text(const Kernel& kernel, uint64_t size,
                                                       const std::string& reason) {
  return kernel.title + ": no memory for its workspace of " + std::to_string(size) +
         " bytes: " + reason;
}

struct DestroyExecutor {
  void operator()(AclExecutor executor) const noexcept {
    if (cann().destroy_executor == nullptr) return;
    cann().destroy_executor(executor);
    HugeMemory::release();
  }
};
// The result of phase 1, for phase 2.
using Executor = std::unique_ptr<void, DestroyExecutor>;

// One launch, with everything that must live until it has run.
template <typename Arguments>
class Launch final : public Task {
 public:
  Launch(const Kernel& kernel, AclStream stream, int64_t deterministic_level)
      : kernel_(kernel), stream_(stream), deterministic_level_(deterministic_level) {}

  CacheEntry& cache_entry() noexcept { return *cache_entry_; }

  void hold(Arguments&& arguments) { arguments_.emplace(std::move(arguments)); }

  // Leaves phase 1 to run(), with torch_npu's workspace. The arguments must be held.
  void defer() noexcept { is_deferred_ = true; }

  // Whether CANN's cache has the result of phase 1. If not, run phase 1 in this thread before
  // `cache` ends.
  bool find(CacheUse& cache) {
    apply_deterministic_level(deterministic_level_);
    executor_.reset(cache.find(&workspace_size_));
    return executor_ != nullptr;
  }

  // Phase 1, with the arguments that are held. Throws std::runtime_error when the kernel refuses.
  void prepare() {
    HugeMemory memory;
    const AclStatus code = std::apply(
        [this](const auto&... arguments) { return call_phase_1(arguments...); }, *arguments_);
    if (CUSTOM_PYPTO_UNLIKELY(code != 0)) {
      throw std::runtime_error(failure_text(kernel_, Phase::prepare, code));
    }
    memory.hand_over();
  }

  // In bytes.
  uint64_t workspace_size() const noexcept { return workspace_size_; }
  void give_workspace(void* workspace) noexcept { workspace_ = workspace; }

 private:
  std::string run() override {
    torch_npu().use_limits(stream_);
    if (!is_deferred_) {
      using Function = AclStatus (*)(void*, uint64_t, AclExecutor, AclStream);
      return finish(reinterpret_cast<Function>(kernel_.run)(workspace_, workspace_size_,
                                                            executor_.get(), stream_));
    }
    {
      CacheUse cache(*cache_entry_);
      if (!find(cache)) prepare();
    }
    try {
      return finish(
          torch_npu().run_with_workspace(kernel_.run, stream_, workspace_size_, executor_.get()));
    } catch (const std::exception& error) {
      return no_workspace_text(kernel_, workspace_size_, custom_pypto::detail::reason_of(error));
    }
  }

  void release() noexcept override {
    executor_.reset();
    arguments_.reset();
    cache_entry_.reset();
  }

  std::string finish(AclStatus code) {
    // Phase 2 has consumed it, whatever status that returned.
    static_cast<void>(executor_.release());
    std::string failure = code == 0 ? "" : failure_text(kernel_, Phase::run, code);
    HugeMemory::release();
    return failure;
  }

  template <typename... Made>
  AclStatus call_phase_1(const Made&... arguments) {
    using Function = AclStatus (*)(typename Made::C..., uint64_t*, AclExecutor*);
    AclExecutor made = nullptr;
    const AclStatus code =
        reinterpret_cast<Function>(kernel_.prepare)(arguments.get()..., &workspace_size_, &made);
    executor_.reset(made);
    return code;
  }

  const Kernel& kernel_;
  const AclStream stream_;
  const int64_t deterministic_level_;
  bool is_deferred_ = false;
  std::optional<CacheEntry> cache_entry_{std::in_place};
  std::optional<Arguments> arguments_;
  Executor executor_;  // which may refer to the arguments
  uint64_t workspace_size_ = 0;
  void* workspace_ = nullptr;
};

inline Tensor empty_workspace(const Kernel& kernel, uint64_t size, int32_t device) {
  const std::array<int64_t, 1> sizes{static_cast<int64_t>(size)};
  const int32_t index = device < 0 ? current_device() : device;
  try {
    return custom_pypto::detail::empty_contiguous(
        sizes, custom_pypto::detail::dtype_code(ScalarType::Byte),
        {aoti_torch_device_type_privateuse1(), index});
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(no_workspace_text(kernel, size, error.what()));
  }
}

// Whether the queue's thread runs phase 1 too. The workspace is then torch_npu's. Where caching is
// off, torch_npu frees it too early: then phase 1 runs here, and the workspace is ours.
inline bool is_for_queue() {
  static const char* const uncached = std::getenv("PYTORCH_NO_NPU_MEMORY_CACHING");
  return torch_npu().queue_setting() == 2 && (uncached == nullptr || *uncached != '1');
}

// `names`: the arguments as in the source; "" if they are not known.
template <std::size_t... I, typename... Args>
void launch(const Kernel& kernel, const char* names, std::index_sequence<I...>,
            const Args&... args) {
  constexpr const auto& types = PassedTypes<Args...>::list;
  if (CUSTOM_PYPTO_UNLIKELY(kernel.compared.load(std::memory_order_relaxed) != &types)) {
    compare_launch(kernel, types, names);
  }
  const std::string& title = kernel.title;
  LaunchDevice device;
  (visit_tensors(args, [&](const Tensor& tensor) { device.add(title, I + 1, tensor); }), ...);
  const DeviceScope scope(device.index());
  const AclStream stream = torch_npu().stream();
  const int64_t level = deterministic_level();
  using Arguments = std::tuple<ArgumentOf<Args>...>;
  const auto made = [&] {
    return Arguments{ArgumentOf<Args>(ArgumentPlace{title, I + 1}, args)...};
  };
  const auto task = std::make_shared<Launch<Arguments>>(kernel, stream, level);
  task->cache_entry().fill(kernel, stream, level, args...);
  if (is_for_queue()) {
    task->hold(made());
    task->defer();
    return enqueue(kernel.symbol, task);
  }
  {
    CacheUse cache(task->cache_entry());
    if (!task->find(cache)) {
      task->hold(made());
      task->prepare();
    }
  }
  // Held until the launch is queued: until then another thread could allocate its memory on this
  // stream. Afterwards the stream's order protects it.
  std::optional<Tensor> workspace;
  if (task->workspace_size() != 0) {
    workspace = empty_workspace(kernel, task->workspace_size(), device.index());
    task->give_workspace(workspace->mutable_data_ptr());
  }
  enqueue(kernel.symbol, task);
}

template <typename Site, typename... Args>
void launch_at(const Kernel& kernel, const Args&... args) {
  // Its initialisation adds it to the list.
  static_cast<void>(&launch_site<Site, Args...>);
  launch(kernel, Site::arguments(), std::index_sequence_for<Args...>(), args...);
}

}  // namespace detail

// Launches `kernel`, which must live until the launch has run, as a KernelChoice's does. Throws
// std::runtime_error that names the kernel for an argument that cannot be passed, when its header
// declares other arguments, and when a phase fails before this returns.
//
// For kernels of several names that take the same arguments. Where there is one name, use
// CUSTOM_PYPTO_LAUNCH: only what that passes is known to builds and to `custom-pypto doctor`.
template <typename... Args>
void launch(const Kernel& kernel, const Args&... args) {
  detail::launch(kernel, "", std::index_sequence_for<Args...>(), args...);
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END

// Names the kernel and the arguments of a launch, in the scope of the macros below.
#define CUSTOM_PYPTO_LAUNCH_SITE(aclnn_name, ...)                     \
  struct CustomPyptoSite {                                            \
    static constexpr const char* symbol() { return #aclnn_name; }     \
    static constexpr const char* arguments() { return #__VA_ARGS__; } \
  }

// Launches a kernel of a KernelChoice, as launch() does; `kernel` has the name `aclnn_name`.
#define CUSTOM_PYPTO_LAUNCH(kernel, aclnn_name, ...)                                \
  do {                                                                              \
    CUSTOM_PYPTO_LAUNCH_SITE(aclnn_name, __VA_ARGS__);                              \
    ::custom_pypto::npu::detail::launch_at<CustomPyptoSite>((kernel), __VA_ARGS__); \
  } while (false)

// Launches one aclnn kernel, found on this machine at first use.
#define CUSTOM_PYPTO_EXEC_NPU_CMD(aclnn_name, ...)                                      \
  do {                                                                                  \
    CUSTOM_PYPTO_LAUNCH_SITE(aclnn_name, __VA_ARGS__);                                  \
    ::custom_pypto::npu::detail::launch_at<CustomPyptoSite>(                            \
        ::custom_pypto::npu::detail::named_kernel<CustomPyptoSite>.get(), __VA_ARGS__); \
  } while (false)

#ifndef EXEC_NPU_CMD
#define EXEC_NPU_CMD CUSTOM_PYPTO_EXEC_NPU_CMD
#endif
