// The version of core's ABI, and the namespace of every other header. Includes nothing, so that
// sources compiled for one instruction set may include it.
#pragma once

// A plugin is accepted by a core of the same major whose minor is at least the plugin's.
#define CUSTOM_PYPTO_ABI_MAJOR 1
#define CUSTOM_PYPTO_ABI_MINOR 0

// Records that version as a note in the library, where builds and `custom-pypto check` read it
// without running the library. CUSTOM_PYPTO_PLUGIN contains it.
#define CUSTOM_PYPTO_RECORD_ABI                                                          \
  __attribute__((section(".note.custom_pypto"), used, aligned(4))) static const struct { \
    unsigned name_size, size, type;                                                      \
    char name[16];                                                                       \
    unsigned version[2];                                                                 \
  } custom_pypto_abi_note = {                                                            \
      13, 8, 1, "custom_pypto", {CUSTOM_PYPTO_ABI_MAJOR, CUSTOM_PYPTO_ABI_MINOR}};

// Hidden by attribute, not only by flag: a function-local static of a visible inline function is
// one object for all plugins of a process (STB_GNU_UNIQUE), even across RTLD_LOCAL.
#define CUSTOM_PYPTO_NAMESPACE_BEGIN                             \
  namespace custom_pypto __attribute__((visibility("hidden"))) { \
    inline namespace v1 {
#define CUSTOM_PYPTO_NAMESPACE_END \
  }                                \
  }

#define CUSTOM_PYPTO_EXPORT extern "C" __attribute__((visibility("default")))
#define CUSTOM_PYPTO_COLD __attribute__((noinline, cold))
#define CUSTOM_PYPTO_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))
