// Streams: each is a queue of tasks and a thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"

namespace custom_pypto_simulator {

// A task of a captured graph runs at every replay, so it must be able to run more than once.
using Task = std::function<int()>;

class Graph;

// Runs tasks in order on a thread of its own.
class Stream {
 public:
  Stream(int32_t id, int32_t device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int32_t id() const { return id_; }
  int32_t device() const { return device_; }

  // Appends to the queue, or to the graph that captures this stream.
  void push(Task task);

  bool idle();

  // Waits until everything pushed so far has run.
  void wait();

  std::shared_ptr<Graph> graph();
  void capture_into(std::shared_ptr<Graph> graph);

 private:
  void run();
  void look_for_work();

  const int32_t id_;
  const int32_t device_;
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::condition_variable drained_;
  std::deque<Task> queue_;
  std::atomic<size_t> pending_{0};
  std::shared_ptr<Graph> graph_;
  bool sleeping_ = false;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

// Gives Python's lock away while the thread waits: what it waits for may need it.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void* thread_ = nullptr;
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
