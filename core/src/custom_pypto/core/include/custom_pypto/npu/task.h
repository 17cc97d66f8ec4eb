// Work for torch_npu's task queue, with errors that reach the caller.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/torch_npu.h>
#include <custom_pypto/torch_error.h>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// What is run once, at once or by the queue's thread, and destroyed in either case.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;

  // "", or what went wrong, which may be thrown too. Whatever the task owns is then released.
  virtual std::string run() = 0;
};

namespace detail {

// A task in the queue's hands. The queue copies the function that it is given, keeps the copy after
// it has run, and may drop it without running it: so all copies share this.
class QueuedTask {
 public:
  explicit QueuedTask(std::unique_ptr<Task> task) : task_(std::move(task)) {}

  // Called by torch_npu. When that is inside enqueue(), nothing is thrown through torch_npu, which
  // does not hold the GIL then and would not take it again: the failure is for enqueue() to throw.
  int run() {
    const std::unique_ptr<Task> task = std::move(task_);
    if (task == nullptr) return 0;
    std::string failure = outcome_of(*task);
    if (failure.empty()) return 0;
    if (running_here() == this) {
      failure_ = std::move(failure);
      return 0;
    }
    remember(failure);
    // The queue prints the text, stops, and lets every later use of the device fail.
    throw std::runtime_error(failure);
  }

  const std::string& failure() const noexcept { return failure_; }

  // The task that this thread is handing to torch_npu.
  static const QueuedTask*& running_here() noexcept {
    static thread_local const QueuedTask* task = nullptr;
    return task;
  }

  // Of the last task that failed in the queue's thread; "" once it has been told.
  static std::string take_last_failure() {
    const std::lock_guard<std::mutex> lock(mutex());
    return std::exchange(text(), "");
  }

 private:
  static std::string outcome_of(Task& task) {
    try {
      return task.run();
    } catch (const std::exception& error) {
      return custom_pypto::detail::reason_of(error);
    }
  }
  static void remember(const std::string& failure) {
    const std::lock_guard<std::mutex> lock(mutex());
    text() = failure;
  }
  // Never destroyed: the queue's thread outlives static objects.
  static std::mutex& mutex() {
    static auto& lock = *std::make_unique<std::mutex>().release();
    return lock;
  }
  static std::string& text() {
    static auto& last = *std::make_unique<std::string>().release();
    return last;
  }

  std::unique_ptr<Task> task_;
  std::string failure_;
};

}  // namespace detail

// Runs `task` after everything that was queued for the current stream before. Throws
// std::runtime_error when it ran at once (TASK_QUEUE_ENABLE=0) and failed. What fails later, in the
// queue's thread, is printed by torch_npu and raised by the next call that uses the device.
inline void enqueue(const std::string& name, std::unique_ptr<Task> task) {
  const auto queued = std::make_shared<detail::QueuedTask>(std::move(task));
  struct Scope {
    explicit Scope(const detail::QueuedTask* task)
        : before(std::exchange(detail::QueuedTask::running_here(), task)) {}
    ~Scope() { detail::QueuedTask::running_here() = before; }
    const detail::QueuedTask* before;
  };
  const Scope scope(queued.get());
  try {
    torch_npu().run(name, [queued] { return queued->run(); });
  } catch (const std::exception& error) {
    const std::string earlier = detail::QueuedTask::take_last_failure();
    if (earlier.empty()) throw;
    throw std::runtime_error(name + " was not launched, because an earlier launch failed: " +
                             earlier + "\ntorch_npu: " + error.what());
  }
  if (CUSTOM_PYPTO_UNLIKELY(!queued->failure().empty())) {
    throw std::runtime_error(queued->failure());
  }
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
