// Graph capture and replay (aclmdlRI*): see graph.h.
#include "graph.h"

#include <atomic>
#include <utility>

#include "custom_pypto_simulator/runtime.h"
#include "error.h"
#include "registry.h"

namespace custom_pypto_simulator {

Graph::Graph(uint32_t id, std::shared_ptr<Stream> origin, aclmdlRICaptureMode mode)
    : id_(id), origin_(std::move(origin)), mode_(mode) {}

void Graph::add(Task task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  tasks_.push_back(std::move(task));
}

std::vector<Task> Graph::tasks() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return tasks_;
}

int Graph::join(const std::shared_ptr<Stream>& stream) {
  const auto other = stream->graph();
  if (other.get() == this) return ACL_SUCCESS;
  if (other) {
    return fail(ACL_ERROR_STREAM_CAPTURE_CONFLICT, "aclrtStreamWaitEvent: stream ", stream->id(),
                " is being captured into another graph");
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    joined_.push_back(stream);
  }
  stream->capture_into(shared_from_this());
  return ACL_SUCCESS;
}

bool Graph::forbids_this_thread() {
  if (mode_ == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) return false;
  return mode_ == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL || thread_ == std::this_thread::get_id();
}

int Graph::end() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    capturing_ = false;
    streams.swap(joined_);
  }
  origin_->capture_into(nullptr);
  for (const auto& stream : streams) stream->capture_into(nullptr);
  if (!invalidated()) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
              "aclmdlRICaptureEnd: the capture became invalid: something was done that a graph "
              "cannot hold");
}

namespace {

Registry<Graph>& graphs() {
  static auto* instance = new Registry<Graph>("graph", "a graph", ACL_ERROR_RT_INVALID_HANDLE);
  return *instance;
}

thread_local aclmdlRICaptureMode thread_mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;

}  // namespace

int refuse_while_capturing(const char* function) {
  if (thread_mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) return ACL_SUCCESS;
  for (const auto& graph : graphs().all()) {
    if (!graph->capturing() || !graph->forbids_this_thread()) continue;
    graph->invalidate();
    return fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, function, ": stream ", graph->origin()->id(),
                " is being captured into a graph; the host cannot wait");
  }
  return ACL_SUCCESS;
}

}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

aclError aclmdlRICaptureBegin(aclrtStream handle, aclmdlRICaptureMode mode) {
  const auto stream = sim::find_stream("aclmdlRICaptureBegin", handle);
  if (!stream) return ACL_ERROR_RT_STREAM_CONTEXT;
  if (stream->graph()) {
    return sim::fail(ACL_ERROR_RT_STREAM_CAPTURED, "aclmdlRICaptureBegin: stream ", stream->id(),
                     " is being captured already");
  }
  static std::atomic<uint32_t> last_id{0};
  const auto graph = std::make_shared<sim::Graph>(++last_id, stream, mode);
  stream->capture_into(sim::graphs().add(graph));
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureGetInfo(aclrtStream handle, aclmdlRICaptureStatus* status,
                                aclmdlRI* graph_handle) {
  const auto stream = sim::find_stream("aclmdlRICaptureGetInfo", handle);
  if (!stream) return ACL_ERROR_RT_STREAM_CONTEXT;
  const auto graph = stream->graph();
  *status = !graph                 ? ACL_MODEL_RI_CAPTURE_STATUS_NONE
            : graph->invalidated() ? ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED
                                   : ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
  if (graph_handle != nullptr) *graph_handle = graph.get();
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureEnd(aclrtStream handle, aclmdlRI* graph_handle) {
  const auto stream = sim::find_stream("aclmdlRICaptureEnd", handle);
  if (!stream) return ACL_ERROR_RT_STREAM_CONTEXT;
  const auto graph = stream->graph();
  if (!graph || graph->origin() != stream) {
    return sim::fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "aclmdlRICaptureEnd: no capture began on ",
                     "stream ", stream->id());
  }
  const int code = graph->end();
  if (code != ACL_SUCCESS) sim::graphs().remove("aclmdlRICaptureEnd", graph.get());
  *graph_handle = code == ACL_SUCCESS ? graph.get() : nullptr;
  return code;
}

aclError aclmdlRIExecuteAsync(aclmdlRI handle, aclrtStream stream_handle) {
  const auto graph = sim::graphs().find("aclmdlRIExecuteAsync", handle);
  const auto stream = sim::find_stream("aclmdlRIExecuteAsync", stream_handle);
  if (!graph || !stream) return ACL_ERROR_RT_INVALID_HANDLE;
  for (auto& task : graph->tasks()) stream->push(std::move(task));
  return ACL_SUCCESS;
}

aclError aclmdlRIDestroy(aclmdlRI handle) {
  return sim::graphs().remove("aclmdlRIDestroy", handle);
}

aclError aclmdlRIGetId(aclmdlRI handle, uint32_t* id) {
  const auto graph = sim::graphs().find("aclmdlRIGetId", handle);
  if (!graph) return ACL_ERROR_RT_INVALID_HANDLE;
  *id = graph->id();
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  std::swap(*mode, sim::thread_mode);
  return ACL_SUCCESS;
}
