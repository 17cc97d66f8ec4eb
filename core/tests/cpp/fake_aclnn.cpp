// An aclnn library with the kernel -DNAME=; -DHALF leaves out its second phase. -DLAUNCHED= makes
// it a kernel that is launched directly and returns this number. -DSOC makes it CANN's runtime, as
// far as it names the NPU.
#include <cstdint>
#include <cstdlib>

#define EXPORT extern "C" __attribute__((visibility("default")))
#define JOIN(a, b) a##b
#define PHASE_1(name) JOIN(name, GetWorkspaceSize)

#ifdef LAUNCHED

EXPORT int launched() { return LAUNCHED; }

#elif defined SOC

EXPORT const char* aclrtGetSocName() { return std::getenv("FAKE_SOC"); }

#else

EXPORT int PHASE_1(NAME)(int64_t, uint64_t* size, void** executor) {
  *size = 0;
  *executor = nullptr;
  return 0;
}
#ifndef HALF
EXPORT int NAME(void*, uint64_t, void*, void*) { return 0; }
#endif

#endif
