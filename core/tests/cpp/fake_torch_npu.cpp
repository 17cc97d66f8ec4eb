// What a plugin calls of libtorch_npu.so, and of CANN through it, without either. A count of live
// objects and the last launch can be asked for.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#define EXPORT __attribute__((visibility("default")))

namespace at {
class Tensor;
}

namespace {

int live = 0;
int fail_creation = 0;  // the n-th from now
int launched_on = 0;
std::function<int()> waiting;

void* create() {
  if (fail_creation > 0 && --fail_creation == 0) return nullptr;
  ++live;
  return std::make_unique<int>(live).release();
}

int destroy(const void* object) {
  const std::unique_ptr<const int> gone(static_cast<const int*>(object));
  --live;
  return 0;
}

void* create_array(const void*, uint64_t) { return create(); }
void* create_scalar(const void*, int) { return create(); }

}  // namespace

EXPORT void* GetAclStream() { return &launched_on; }

EXPORT void RunAclCall(const std::string&, const std::function<int()>& function) {
  const char* mode = std::getenv("FAKE_QUEUE");
  if (mode != nullptr && std::strcmp(mode, "1") == 0) {
    waiting = function;
  } else {
    function();
  }
}

EXPORT void* GetOpApiFuncAddr(const char* name) {
  const std::string wanted = name;
  if (wanted == "aclCreateScalar") return reinterpret_cast<void*>(&create_scalar);
  if (wanted.rfind("aclCreate", 0) == 0) return reinterpret_cast<void*>(&create_array);
  if (wanted.rfind("aclDestroy", 0) == 0) return reinterpret_cast<void*>(&destroy);
  return nullptr;
}

#ifndef OLD
EXPORT void* ConvertType(const at::Tensor&) { return create(); }
#endif

extern "C" EXPORT int fake_live() { return live; }
extern "C" EXPORT void fake_fail_creation(int nth) { fail_creation = nth; }
extern "C" EXPORT void* fake_executor() { return create(); }
extern "C" EXPORT void fake_use(void* executor) { destroy(executor); }

// What torch_npu's queue does later: 0, 1 for an error code, 2 for an exception.
extern "C" EXPORT int fake_run_queue(char* text, std::size_t size) {
  try {
    const int code = waiting();
    waiting = nullptr;
    return code == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    waiting = nullptr;
    std::snprintf(text, size, "%s", error.what());
    return 2;
  }
}
