// Host callbacks in a stream. They run on the stream's thread, so no other thread has to poll.
#include <chrono>
#include <thread>

#include "custom_pypto_simulator/runtime.h"
#include "stream.h"

namespace sim = custom_pypto_simulator;

namespace {

aclError launch(const char* function, aclrtStream stream, void (*run)(void*), void* state) {
  return sim::push(function, stream, [run, state] {
    run(state);
    return ACL_SUCCESS;
  });
}

}  // namespace

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc run, void* state) {
  return launch("aclrtLaunchHostFunc", stream, run, state);
}

aclError aclrtLaunchCallback(aclrtCallback run, void* state, aclrtCallbackBlockType,
                             aclrtStream stream) {
  return launch("aclrtLaunchCallback", stream, run, state);
}

aclError aclrtSubscribeReport(uint64_t, aclrtStream) { return ACL_SUCCESS; }

aclError aclrtUnSubscribeReport(uint64_t, aclrtStream) { return ACL_SUCCESS; }

// torch_npu calls this in a loop; without a pause that would occupy a core.
aclError aclrtProcessReport(int32_t milliseconds) {
  constexpr int32_t kLongest = 100;
  const int32_t pause = milliseconds < 0 || milliseconds > kLongest ? kLongest : milliseconds;
  std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  return ACL_SUCCESS;
}
