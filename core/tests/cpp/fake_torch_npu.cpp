// Stands in for the libtorch_npu.so of an old torch_npu: it has the first functions that a launch
// looks up, and not ConvertType.
#include <functional>
#include <string>

#define EXPORT __attribute__((visibility("default")))

EXPORT void* GetAclStream() { return nullptr; }
EXPORT void RunAclCall(const std::string&, const std::function<int()>&) {}
EXPORT void* GetOpApiFuncAddr(const char*) { return nullptr; }
