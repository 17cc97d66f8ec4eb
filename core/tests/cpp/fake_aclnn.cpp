// An aclnn library with the kernel -DNAME=; -DHALF leaves out its second phase. -DKINDS makes it
// aclnnKinds, which shows its arguments. -DLAUNCHED= makes it a kernel that is launched directly
// and returns this number. -DSOC makes it CANN's runtime, as far as it names the NPU.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define EXPORT extern "C" __attribute__((visibility("default")))
#define JOIN(a, b) a##b
#define PHASE_1(name) JOIN(name, GetWorkspaceSize)

#ifdef KINDS

EXPORT void* fake_executor();
EXPORT void fake_use(void*);

namespace {

char last[512];

int outcome(const char* variable) {
  const char* code = std::getenv(variable);
  return code == nullptr ? 0 : std::atoi(code);
}

}  // namespace

EXPORT int aclnnKindsGetWorkspaceSize(int64_t number, double real, bool flag, const char* text,
                                      const char* maybe_text, void* numbers, void* reals,
                                      void* flags, double maybe_real, int dtype, void* scalar,
                                      void* absent, const char* literal, uint64_t* size,
                                      void** executor) {
  std::snprintf(last, sizeof last, "%ld %g %d %s %s %d%d%d %g %d %d%d %s",
                static_cast<long>(number), real, flag, text,
                maybe_text == nullptr ? "(null)" : maybe_text, numbers != nullptr, reals != nullptr,
                flags != nullptr, maybe_real, dtype, scalar != nullptr, absent != nullptr, literal);
  *size = 0;
  if (outcome("FAKE_PHASE_1") != 0) return outcome("FAKE_PHASE_1");
  *executor = fake_executor();
  return 0;
}

EXPORT int aclnnKinds(void*, uint64_t, void* executor, void*) {
  fake_use(executor);
  return outcome("FAKE_PHASE_2");
}

EXPORT const char* fake_last() { return last; }

#elif defined LAUNCHED

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
