// Graph capture and replay (aclmdlRI*): see stream.h.
#include <atomic>
#include <utility>

#include "registry.h"
#include "stream.h"

namespace custom_pypto_simulator {
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
    if (!graph->forbids_this_thread()) continue;
    graph->is_invalid = true;
    return fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, function, ": stream ", graph->origin->id(),
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
  const std::shared_ptr<sim::Graph> graph(new sim::Graph{++last_id, stream, mode});
  stream->capture_into(sim::graphs().add(graph));
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureGetInfo(aclrtStream handle, aclmdlRICaptureStatus* status,
                                aclmdlRI* graph_handle) {
  const auto stream = sim::find_stream("aclmdlRICaptureGetInfo", handle);
  if (!stream) return ACL_ERROR_RT_STREAM_CONTEXT;
  const auto graph = stream->graph();
  *status = !graph              ? ACL_MODEL_RI_CAPTURE_STATUS_NONE
            : graph->is_invalid ? ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED
                                : ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
  if (graph_handle != nullptr) *graph_handle = graph.get();
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureEnd(aclrtStream handle, aclmdlRI* graph_handle) {
  const auto stream = sim::find_stream("aclmdlRICaptureEnd", handle);
  if (!stream) return ACL_ERROR_RT_STREAM_CONTEXT;
  const auto graph = stream->graph();
  if (!graph || graph->origin != stream) {
    return sim::fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "aclmdlRICaptureEnd: no capture began on ",
                     "stream ", stream->id());
  }
  graph->is_capturing = false;
  stream->capture_into(nullptr);
  for (const auto& each : graph->joined) each->capture_into(nullptr);
  graph->joined.clear();
  *graph_handle = graph->is_invalid ? nullptr : graph.get();
  if (!graph->is_invalid) return ACL_SUCCESS;
  sim::graphs().remove("aclmdlRICaptureEnd", graph.get());
  return sim::fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
                   "aclmdlRICaptureEnd: the capture became invalid: something was done that a ",
                   "graph cannot hold");
}

aclError aclmdlRIExecuteAsync(aclmdlRI handle, aclrtStream stream_handle) {
  const auto graph = sim::graphs().find("aclmdlRIExecuteAsync", handle);
  const auto stream = sim::find_stream("aclmdlRIExecuteAsync", stream_handle);
  if (!graph || !stream) return ACL_ERROR_RT_INVALID_HANDLE;
  // Complete since the capture ended.
  for (const auto& task : graph->tasks) stream->push(task);
  return ACL_SUCCESS;
}

aclError aclmdlRIDestroy(aclmdlRI handle) {
  return sim::graphs().remove("aclmdlRIDestroy", handle);
}

aclError aclmdlRIGetId(aclmdlRI handle, uint32_t* id) {
  const auto graph = sim::graphs().find("aclmdlRIGetId", handle);
  if (!graph) return ACL_ERROR_RT_INVALID_HANDLE;
  *id = graph->id;
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  std::swap(*mode, sim::thread_mode);
  return ACL_SUCCESS;
}
