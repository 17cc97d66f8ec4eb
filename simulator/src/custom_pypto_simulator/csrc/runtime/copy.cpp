// Copies and fills, synchronous or on a stream.
#include <cstring>

#include "memory.h"
#include "stream.h"

namespace sim = custom_pypto_simulator;

namespace {

int check(const char* function, const void* to, size_t room, size_t bytes) {
  if (to == nullptr && bytes != 0) {
    return sim::fail(ACL_ERROR_INVALID_PARAM, function, ": null destination");
  }
  if (bytes <= room) return ACL_SUCCESS;
  return sim::fail(ACL_ERROR_INVALID_PARAM, function, ": ", bytes, " bytes do not fit in ", room);
}

// Memory that the runtime does not know is read when the copy runs, at a replay long after the
// capture; the real runtime refuses that too.
int check_capture(const char* function, sim::Stream& stream, const void* to, const void* from) {
  const auto graph = stream.graph();
  if (!graph || (sim::allocation_of(to) && sim::allocation_of(from))) return ACL_SUCCESS;
  graph->is_invalid = true;
  return sim::fail(ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC, function, ": stream ", stream.id(),
                   " is being captured into a graph; pageable host memory cannot be copied");
}

}  // namespace

aclError aclrtMemcpy(void* to, size_t room, const void* from, size_t bytes, aclrtMemcpyKind) {
  if (const int code = check("aclrtMemcpy", to, room, bytes)) return code;
  if (const int code = sim::refuse_while_capturing("aclrtMemcpy")) return code;
  std::memmove(to, from, bytes);
  return ACL_SUCCESS;
}

aclError aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t bytes, aclrtMemcpyKind,
                          aclrtStream handle) {
  if (const int code = check("aclrtMemcpyAsync", to, room, bytes)) return code;
  const auto stream = sim::find_stream("aclrtMemcpyAsync", handle);
  if (!stream) return ACL_ERROR_RT_STREAM_CONTEXT;
  if (const int code = check_capture("aclrtMemcpyAsync", *stream, to, from)) return code;
  stream->push([to, from, bytes] {
    std::memmove(to, from, bytes);
    return ACL_SUCCESS;
  });
  return ACL_SUCCESS;
}

aclError aclrtMemset(void* to, size_t room, int32_t value, size_t bytes) {
  if (const int code = check("aclrtMemset", to, room, bytes)) return code;
  std::memset(to, value, bytes);
  return ACL_SUCCESS;
}

aclError aclrtMemsetAsync(void* to, size_t room, int32_t value, size_t bytes, aclrtStream handle) {
  if (const int code = check("aclrtMemsetAsync", to, room, bytes)) return code;
  return sim::push("aclrtMemsetAsync", handle, [to, value, bytes] {
    std::memset(to, value, bytes);
    return ACL_SUCCESS;
  });
}
