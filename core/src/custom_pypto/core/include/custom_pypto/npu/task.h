// The one device of a launch, and work for torch_npu's task queue, with errors that reach the
// caller.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/message.h>
#include <custom_pypto/npu/torch_npu.h>
#include <custom_pypto/placement.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// The device that the tensors of a launch are on.
class LaunchDevice {
 public:
  // Throws, with `title` first, when a tensor is not on an NPU, or on another one than those
  // before.
  void add(const std::string& title, std::size_t number, const Tensor& tensor) {
    const custom_pypto::detail::Placement place = custom_pypto::detail::placement_of(tensor);
    const bool is_npu = place.device_type == aoti_torch_device_type_privateuse1();
    if (CUSTOM_PYPTO_UNLIKELY(!is_npu || (index_ >= 0 && place.device_index != index_))) {
      fail(title.c_str(), nullptr, "argument ", number, " is on ", tensor.device(), ", not on ",
           is_npu ? "the NPU of the tensors before it" : "an NPU");
    }
    index_ = place.device_index;
  }

  // -1 when there are no tensors.
  int32_t index() const noexcept { return index_; }

 private:
  int32_t index_ = -1;
};

inline int32_t current_device() {
  int32_t index = 0;
  custom_pypto::detail::expect_success(aoti_torch_get_current_device_index(&index),
                                       "the current NPU");
  return index;
}

// Makes a device the current one, to the end of the scope. -1: leaves it as it is.
class DeviceScope {
 public:
  explicit DeviceScope(int32_t index) {
    if (index < 0 || index == current_device()) return;
    DeviceGuardHandle guard = nullptr;
    custom_pypto::detail::expect_success(aoti_torch_create_device_guard(index, &guard),
                                         "changing the current NPU");
    guard_.reset(guard);
  }

 private:
  using Leave = custom_pypto::detail::Deleter<aoti_torch_delete_device_guard>;
  std::unique_ptr<DeviceGuardOpaque, Leave> guard_;
};

namespace detail {

// Work that runs once: immediately, or in the queue's thread.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;

 protected:
  // Returns "" or the error, which may be thrown too. Called once at most.
  virtual std::string run() = 0;
  // Frees what the task owns, once it has run: the queue keeps the task itself until another task
  // replaces it.
  virtual void release() noexcept = 0;

 private:
  friend void enqueue(const std::string& name, const std::shared_ptr<Task>& task);

  // Called by torch_npu. If this is within enqueue(), enqueue() throws the error: torch_npu has
  // released the GIL there and would not take it again when an exception passes.
  int run_from_torch_npu() {
    if (std::exchange(has_run_, true)) return 0;
    std::string failure = outcome();
    if (failure.empty()) return 0;
    if (running_here() == this) {
      failure_ = std::move(failure);
      return 0;
    }
    exchange_last_failure(failure);
    // The queue prints the text, stops, and lets every later use of the device fail.
    throw std::runtime_error(failure);
  }

  std::string outcome() {
    std::string failure;
    try {
      failure = run();
    } catch (const std::exception& error) {
      failure = custom_pypto::detail::reason_of(error);
    }
    release();
    return failure;
  }

  // The task that this thread is handing to torch_npu.
  static const Task*& running_here() noexcept {
    static thread_local const Task* task = nullptr;
    return task;
  }

  // Replaces the error of the last task that failed in the queue's thread, and returns it; "" once
  // it has been reported.
  static std::string exchange_last_failure(const std::string& failure) {
    // Never destroyed: the queue's thread outlives static objects.
    static auto& mutex = *std::make_unique<std::mutex>().release();
    static auto& last = *std::make_unique<std::string>().release();
    const std::lock_guard<std::mutex> lock(mutex);
    return std::exchange(last, failure);
  }

  bool has_run_ = false;
  std::string failure_;
};

// Runs `task` after everything that was queued for the current stream before. Throws
// std::runtime_error when it ran immediately (TASK_QUEUE_ENABLE=0) and failed. torch_npu prints a
// later error, in the queue's thread, and raises it from the next call that uses the device.
inline void enqueue(const std::string& name, const std::shared_ptr<Task>& task) {
  struct Scope {
    explicit Scope(const Task* task) : before(std::exchange(Task::running_here(), task)) {}
    ~Scope() { Task::running_here() = before; }
    const Task* before;
  };
  const Scope scope(task.get());
  try {
    // The queue copies the function, and may drop it without calling it.
    torch_npu().run(name, [task] { return task->run_from_torch_npu(); });
  } catch (const std::exception& error) {
    const std::string earlier = Task::exchange_last_failure("");
    if (earlier.empty()) throw;
    throw std::runtime_error(name + " was not launched, because an earlier launch failed: " +
                             earlier + "\ntorch_npu: " + error.what());
  }
  if (CUSTOM_PYPTO_UNLIKELY(!task->failure_.empty())) {
    throw std::runtime_error(task->failure_);
  }
}

}  // namespace detail
}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
