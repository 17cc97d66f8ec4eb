// Graph capture (aclmdlRI*): the tasks pushed to captured streams, in the host's order.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "stream.h"

namespace custom_pypto_simulator {

class Graph : public std::enable_shared_from_this<Graph> {
 public:
  Graph(uint32_t id, std::shared_ptr<Stream> origin, aclmdlRICaptureMode mode);

  uint32_t id() const { return id_; }

  // The host's order respects every event between the captured streams, so a sequential replay on
  // one stream is correct.
  void add(Task task);
  std::vector<Task> tasks();

  // A stream that waits for an event of this capture joins it.
  int join(const std::shared_ptr<Stream>& stream);

  // A call that a graph cannot hold makes the capture invalid.
  void invalidate() { invalidated_ = true; }

  bool capturing() const { return capturing_; }
  bool invalidated() const { return invalidated_; }
  const std::shared_ptr<Stream>& origin() const { return origin_; }

  // Whether a call that blocks the host is forbidden to the calling thread.
  bool forbids_this_thread();

  // Releases the streams; returns the status of the whole capture.
  int end();

 private:
  const uint32_t id_;
  const std::shared_ptr<Stream> origin_;
  const aclmdlRICaptureMode mode_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::vector<Task> tasks_;
  std::vector<std::shared_ptr<Stream>> joined_;
  std::atomic<bool> capturing_{true};
  std::atomic<bool> invalidated_{false};
};

}  // namespace custom_pypto_simulator
