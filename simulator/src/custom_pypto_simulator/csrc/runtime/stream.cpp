// Streams: each is a queue of tasks and a thread.
#include "stream.h"

#include <dlfcn.h>

#include <chrono>
#include <map>
#include <utility>

#include "custom_pypto_simulator/runtime.h"
#include "device.h"
#include "error.h"
#include "graph.h"
#include "registry.h"

namespace custom_pypto_simulator {

Stream::Stream(int32_t id, int32_t device) : id_(id), device_(device), thread_([this] { run(); }) {}

Stream::~Stream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    ++pending_;
  }
  pushed_.notify_all();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // a task of this stream held the last reference
  } else {
    thread_.join();
  }
}

void Stream::run() {
  choose_device(device_);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (queue_.empty() && !stopping_) {
      lock.unlock();
      look_for_work();
      lock.lock();
    }
    while (queue_.empty() && !stopping_) {
      sleeping_ = true;
      pushed_.wait(lock);
      sleeping_ = false;
    }
    if (queue_.empty()) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    --pending_;
    busy_ = true;
    lock.unlock();
    if (const int code = task()) {
      const auto error = take_recent();
      raise_on_device(device_, error ? *error : Error{code, "an asynchronous task failed"});
    }
    task = nullptr;  // release what it holds before the stream counts as idle
    lock.lock();
    busy_ = false;
    if (queue_.empty()) drained_.notify_all();
  }
}

// Waking a thread costs the launching thread more than a launch does, so an idle stream spins for a
// while before it sleeps.
void Stream::look_for_work() {
  constexpr std::chrono::microseconds kAwake(50);
  const auto until = std::chrono::steady_clock::now() + kAwake;
  while (pending_ == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

void Stream::push(Task task) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (graph_) {
    graph_->add(std::move(task));
    return;
  }
  queue_.push_back(std::move(task));
  ++pending_;
  const bool wake = sleeping_;
  lock.unlock();
  if (wake) pushed_.notify_one();
}

bool Stream::idle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queue_.empty() && !busy_;
}

WithoutGil::WithoutGil() {
  static const auto holds = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  static const auto save = reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyEval_SaveThread"));
  if (holds != nullptr && holds() != 0) thread_ = save();
}

WithoutGil::~WithoutGil() {
  static const auto restore =
      reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "PyEval_RestoreThread"));
  if (thread_ != nullptr) restore(thread_);
}

void Stream::wait() {
  const WithoutGil without_gil;
  std::unique_lock<std::mutex> lock(mutex_);
  drained_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

std::shared_ptr<Graph> Stream::graph() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return graph_;
}

void Stream::capture_into(std::shared_ptr<Graph> graph) {
  const std::lock_guard<std::mutex> lock(mutex_);
  graph_ = std::move(graph);
}

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
    graph->invalidate();
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
  *status = stream->idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
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
