// Streams and host callbacks: see stream.h.
#include "stream.h"

#include <map>

#include "registry.h"

namespace custom_pypto_simulator {
namespace {

Registry<Stream>& streams() {
  static auto* instance = new Registry<Stream>("stream", "a stream", ACL_ERROR_RT_STREAM_CONTEXT);
  return *instance;
}

std::shared_ptr<Stream> create_stream() {
  static std::atomic<int32_t> last_id{0};
  return streams().add(std::make_shared<Stream>(++last_id, current_device()));
}

std::shared_ptr<Stream> default_stream() {
  static std::mutex mutex;
  static auto* by_device = new std::map<int32_t, std::shared_ptr<Stream>>;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& stream = (*by_device)[current_device()];
  if (!stream) stream = create_stream();
  return stream;
}

}  // namespace

std::shared_ptr<Stream> find_stream(const char* function, aclrtStream handle) {
  return handle == nullptr ? default_stream() : streams().find(function, handle);
}

int push(const char* function, aclrtStream handle, Task task) {
  const auto stream = find_stream(function, handle);
  if (!stream) return ACL_ERROR_RT_STREAM_CONTEXT;
  if (const int code = refuse_if_lost(function, stream->device())) return code;
  stream->push(std::move(task));
  return ACL_SUCCESS;
}

std::vector<std::shared_ptr<Stream>> streams_of(int32_t device) {
  std::vector<std::shared_ptr<Stream>> result;
  for (auto& stream : streams().all()) {
    if (stream->device() == device) result.push_back(std::move(stream));
  }
  return result;
}

}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT int custom_pypto_sim_enqueue(aclrtStream handle, const char* name,
                                                     int (*run)(void*), void* state,
                                                     void (*destroy)(void*)) {
  const std::shared_ptr<void> owned(state, destroy);
  return sim::push(name, handle, [owned, run] { return run(owned.get()); });
}

// Waits for everything pending on every stream, so that the process can end.
CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_drain() {
  for (const auto& stream : sim::streams().all()) stream->wait();
}

aclError aclrtCreateStreamWithConfig(aclrtStream* handle, uint32_t, uint32_t) {
  *handle = sim::create_stream().get();
  return ACL_SUCCESS;
}

aclError aclrtCreateStream(aclrtStream* handle) {
  return aclrtCreateStreamWithConfig(handle, 0, 0);
}

aclError aclrtDestroyStream(aclrtStream handle) {
  return sim::streams().remove("aclrtDestroyStream", handle);
}

aclError aclrtDestroyStreamForce(aclrtStream handle) { return aclrtDestroyStream(handle); }

aclError aclrtSynchronizeStream(aclrtStream handle) {
  const auto stream = sim::find_stream("aclrtSynchronizeStream", handle);
  if (!stream) return ACL_ERROR_RT_STREAM_CONTEXT;
  if (const auto graph = stream->graph()) {
    graph->is_invalid = true;
    return sim::fail(ACL_ERROR_RT_STREAM_CAPTURED, "aclrtSynchronizeStream: stream ", stream->id(),
                     " is being captured into a graph; the host cannot wait for it");
  }
  stream->wait();
  return sim::device_status(stream->device());
}

// Limits of time are ignored.
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream handle, int32_t) {
  return aclrtSynchronizeStream(handle);
}

aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus* status) {
  const auto stream = sim::find_stream("aclrtStreamQuery", handle);
  if (!stream) return ACL_ERROR_RT_STREAM_CONTEXT;
  *status = stream->is_idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtStreamGetId(aclrtStream handle, int32_t* id) {
  const auto stream = sim::find_stream("aclrtStreamGetId", handle);
  if (!stream) return ACL_ERROR_RT_STREAM_CONTEXT;
  *id = stream->id();
  return ACL_SUCCESS;
}

// Host callbacks run on the stream's thread, so no other thread has to poll.
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc run, void* state) {
  return sim::push("aclrtLaunchHostFunc", stream, [run, state] {
    run(state);
    return ACL_SUCCESS;
  });
}

aclError aclrtLaunchCallback(aclrtCallback run, void* state, aclrtCallbackBlockType,
                             aclrtStream stream) {
  return aclrtLaunchHostFunc(stream, run, state);
}

// torch_npu calls this in a loop; without a pause that would occupy a core.
aclError aclrtProcessReport(int32_t milliseconds) {
  constexpr int32_t kLongest = 100;
  const int32_t pause = milliseconds < 0 || milliseconds > kLongest ? kLongest : milliseconds;
  std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  return ACL_SUCCESS;
}
