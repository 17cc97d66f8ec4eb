// Events: record, wait, query, elapsed time.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "registry.h"
#include "stream.h"

namespace custom_pypto_simulator {
namespace {

using Clock = std::chrono::steady_clock;

// Each record starts a generation; a wait is for the latest generation at the time of the call.
struct State {
  uint64_t recorded = 0;
  uint64_t completed = 0;
  std::shared_ptr<Graph> graph;  // the capture that contains the last record
  Clock::time_point time = Clock::now();

  bool done() const { return completed >= recorded; }
};

class Event {
 public:
  uint64_t record(std::shared_ptr<Graph> graph) {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_.graph = std::move(graph);
    return ++state_.recorded;
  }

  void complete(uint64_t generation) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      state_.completed = std::max(state_.completed, generation);
      state_.time = Clock::now();
    }
    completion_.notify_all();
  }

  void wait(uint64_t generation) {
    std::unique_lock<std::mutex> lock(mutex_);
    completion_.wait(lock, [&] { return state_.completed >= generation; });
  }

  State state() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return state_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable completion_;
  State state_;
};

// A stream that waits for an event of a capture joins it.
int join(const std::shared_ptr<Graph>& graph, const std::shared_ptr<Stream>& stream) {
  const auto other = stream->graph();
  if (other == graph) return ACL_SUCCESS;
  if (other) {
    return fail(ACL_ERROR_STREAM_CAPTURE_CONFLICT, "aclrtStreamWaitEvent: stream ", stream->id(),
                " is being captured into another graph");
  }
  {
    const std::lock_guard<std::mutex> lock(graph->mutex);
    graph->joined.push_back(stream);
  }
  stream->capture_into(graph);
  return ACL_SUCCESS;
}

Registry<Event>& events() {
  static auto* instance = new Registry<Event>("event", "an event", ACL_ERROR_RT_INVALID_HANDLE);
  return *instance;
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

aclError aclrtCreateEventExWithFlag(aclrtEvent* handle, uint32_t) {
  *handle = sim::events().add(std::make_shared<sim::Event>()).get();
  return ACL_SUCCESS;
}

aclError aclrtCreateEventWithFlag(aclrtEvent* handle, uint32_t flag) {
  return aclrtCreateEventExWithFlag(handle, flag);
}

aclError aclrtDestroyEvent(aclrtEvent handle) {
  return sim::events().remove("aclrtDestroyEvent", handle);
}

aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream stream_handle) {
  const auto event = sim::events().find("aclrtRecordEvent", handle);
  const auto stream = sim::find_stream("aclrtRecordEvent", stream_handle);
  if (!event || !stream) return ACL_ERROR_RT_INVALID_HANDLE;
  const uint64_t generation = event->record(stream->graph());
  stream->push([event, generation] {
    event->complete(generation);
    return ACL_SUCCESS;
  });
  return ACL_SUCCESS;
}

aclError aclrtStreamWaitEvent(aclrtStream stream_handle, aclrtEvent handle) {
  const auto event = sim::events().find("aclrtStreamWaitEvent", handle);
  const auto stream = sim::find_stream("aclrtStreamWaitEvent", stream_handle);
  if (!event || !stream) return ACL_ERROR_RT_INVALID_HANDLE;
  const sim::State state = event->state();
  if (state.graph && state.graph->is_capturing) {
    // Tasks of one capture are in order already: the stream only joins the capture.
    return sim::join(state.graph, stream);
  }
  stream->push([event, generation = state.recorded] {
    event->wait(generation);
    return ACL_SUCCESS;
  });
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeEvent(aclrtEvent handle) {
  const auto event = sim::events().find("aclrtSynchronizeEvent", handle);
  if (!event) return ACL_ERROR_RT_INVALID_HANDLE;
  const sim::State state = event->state();
  if (state.graph && state.graph->is_capturing) {
    state.graph->is_invalid = true;
    return sim::fail(ACL_ERROR_RT_EVENT_CAPTURED,
                     "aclrtSynchronizeEvent: the event was recorded into a graph being captured; "
                     "the host cannot wait for it");
  }
  {
    const sim::WithoutGil without_gil;
    event->wait(state.recorded);
  }
  return sim::device_status(sim::current_device());
}

aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus* status) {
  const auto event = sim::events().find("aclrtQueryEventStatus", handle);
  if (!event) return ACL_ERROR_RT_INVALID_HANDLE;
  *status = event->state().done() ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                                  : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent from, aclrtEvent to) {
  const auto first = sim::events().find("aclrtEventElapsedTime", from);
  const auto second = sim::events().find("aclrtEventElapsedTime", to);
  if (!first || !second) return ACL_ERROR_RT_INVALID_HANDLE;
  const std::chrono::duration<float, std::milli> elapsed =
      second->state().time - first->state().time;
  *milliseconds = elapsed.count();
  return ACL_SUCCESS;
}
