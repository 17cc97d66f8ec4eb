// Streams, each a queue of tasks and a thread; graphs that capture them (aclmdlRI*).
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "custom_pypto_simulator/runtime.h"
#include "device.h"

namespace custom_pypto_simulator {

// A task of a captured graph runs at every replay, so it must be able to run more than once.
using Task = std::function<int()>;

class Stream;

// The tasks pushed to captured streams, in the host's order. That respects every event between the
// streams, so a sequential replay on one stream is correct.
struct Graph {
  const uint32_t id;
  const std::shared_ptr<Stream> origin;
  const aclmdlRICaptureMode mode;
  const std::thread::id thread = std::this_thread::get_id();
  std::mutex mutex{};
  std::vector<Task> tasks{};
  std::vector<std::shared_ptr<Stream>> joined{};
  std::atomic<bool> is_capturing{true};
  // A call that a graph cannot hold makes the capture invalid.
  std::atomic<bool> is_invalid{false};

  void add(Task task) {
    const std::lock_guard<std::mutex> lock(mutex);
    tasks.push_back(std::move(task));
  }

  // Whether a call that blocks the host is forbidden to the calling thread.
  bool forbids_this_thread() const {
    if (!is_capturing || mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) return false;
    return mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL || thread == std::this_thread::get_id();
  }
};

// Gives Python's lock away while the thread waits: what it waits for may need it.
class WithoutGil {
 public:
  WithoutGil() {
    static const auto holds = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
    static const auto save =
        reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyEval_SaveThread"));
    if (holds != nullptr && holds() != 0) thread_ = save();
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    static const auto restore =
        reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "PyEval_RestoreThread"));
    if (thread_ != nullptr) restore(thread_);
  }

 private:
  void* thread_ = nullptr;
};

// Runs tasks in order on a thread of its own.
class Stream {
 public:
  Stream(int32_t id, int32_t device) : id_(id), device_(device), thread_([this] { run(); }) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_stopping_ = true;
      ++pending_;
    }
    pushed_.notify_all();
    if (thread_.get_id() == std::this_thread::get_id()) {
      thread_.detach();  // a task of this stream held the last reference
    } else {
      thread_.join();
    }
  }

  int32_t id() const { return id_; }
  int32_t device() const { return device_; }

  // Appends to the queue, or to the graph that captures this stream.
  void push(Task task) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (graph_) return graph_->add(std::move(task));
    queue_.push_back(std::move(task));
    ++pending_;
    const bool wake = is_sleeping_;
    lock.unlock();
    if (wake) pushed_.notify_one();
  }

  bool is_idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return queue_.empty() && !is_busy_;
  }

  // Waits until everything pushed so far has run.
  void wait() {
    const WithoutGil without_gil;
    std::unique_lock<std::mutex> lock(mutex_);
    drained_.wait(lock, [this] { return queue_.empty() && !is_busy_; });
  }

  std::shared_ptr<Graph> graph() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return graph_;
  }
  void capture_into(std::shared_ptr<Graph> graph) {
    const std::lock_guard<std::mutex> lock(mutex_);
    graph_ = std::move(graph);
  }

 private:
  void run() {
    choose_device(device_);
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      if (queue_.empty() && !is_stopping_) {
        lock.unlock();
        look_for_work();
        lock.lock();
      }
      while (queue_.empty() && !is_stopping_) {
        is_sleeping_ = true;
        pushed_.wait(lock);
        is_sleeping_ = false;
      }
      if (queue_.empty()) return;
      Task task = std::move(queue_.front());
      queue_.pop_front();
      --pending_;
      is_busy_ = true;
      lock.unlock();
      if (const int code = task()) {
        const auto error = take_recent();
        raise_on_device(device_, error ? *error : Error{code, "an asynchronous task failed"});
      }
      task = nullptr;  // release what it holds before the stream counts as idle
      lock.lock();
      is_busy_ = false;
      if (queue_.empty()) drained_.notify_all();
    }
  }

  // Waking a thread costs the launching thread more than a launch does, so an idle stream spins for
  // a while before it sleeps.
  void look_for_work() {
    constexpr std::chrono::microseconds kAwake(50);
    const auto until = std::chrono::steady_clock::now() + kAwake;
    while (pending_ == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }

  const int32_t id_;
  const int32_t device_;
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::condition_variable drained_;
  std::deque<Task> queue_;
  std::atomic<size_t> pending_{0};
  std::shared_ptr<Graph> graph_;
  bool is_sleeping_ = false;
  bool is_busy_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

// The stream behind a handle; the device's default stream for a null one. Null, with the recent
// error set, for an invalid one.
std::shared_ptr<Stream> find_stream(const char* function, aclrtStream handle);

// Pushes a task to the stream behind a handle. Not 0, with the recent error set, for an invalid
// one.
int push(const char* function, aclrtStream handle, Task task);

std::vector<std::shared_ptr<Stream>> streams_of(int32_t device);

// The status of calls that block the host: not 0 while a capture forbids them in this thread.
int refuse_while_capturing(const char* function);

}  // namespace custom_pypto_simulator
