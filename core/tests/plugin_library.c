// A plugin's library in C, for tests that need many: what it registers is written into the finished
// file by plugin_factory.py, so that one compilation, without torch's headers, serves all.
#include <custom_pypto/abi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

CUSTOM_PYPTO_RECORD_ABI

#define EXPORT __attribute__((visibility("default")))
#define ROOM 1024

extern int32_t aoti_torch_library_init_fragment(const char*, const char*, uint32_t, void**);
extern int32_t aoti_torch_library_init_impl(const char*, const char*, const char*, uint32_t,
                                            void**);
extern int32_t aoti_torch_library_def(void*, const char*);
extern int32_t torch_library_impl(void*, const char*, void (*)(uint64_t*, uint64_t, uint64_t),
                                  uint64_t);
extern int32_t aoti_torch_delete_library_object(void*);
extern int32_t aoti_torch_clone(void*, void**);
extern int32_t aoti_torch_delete_tensor_object(void*);
// std::__throw_length_error of the C++ library that torch brings.
extern void _ZSt20__throw_length_errorPKc(const char*);

// Schemas, each ended by a newline; or "!" and the error text of a registration that fails. "-"
// before a schema leaves the op without a kernel, "+" registers a kernel for the op of another, "*"
// one for AutogradCPU. "=" before all that has a static initialiser do it, which nothing undoes;
// there "=?" and a name stand for a fault: see `fail`.
static volatile char text[ROOM] = "CUSTOM_PYPTO_TEXT_GOES_HERE";

static void* schemas;
static void* kernels;
static void* other_kernels;

// Every op is `(Tensor x) -> Tensor` and gives a copy of x.
static void copy(uint64_t* stack, uint64_t arguments, uint64_t results) {
  (void)arguments;
  (void)results;
  void* result = NULL;
  aoti_torch_clone((void*)(uintptr_t)stack[0], &result);
  aoti_torch_delete_tensor_object((void*)(uintptr_t)stack[0]);
  stack[0] = (uint64_t)(uintptr_t)result;
}

EXPORT void custom_pypto_unregister_v1(void) {
  if (kernels != NULL) aoti_torch_delete_library_object(kernels);
  if (other_kernels != NULL) aoti_torch_delete_library_object(other_kernels);
  if (schemas != NULL) aoti_torch_delete_library_object(schemas);
  schemas = kernels = other_kernels = NULL;
}

static void fail(const char* fault) {
  if (strcmp(fault, "throw") == 0) _ZSt20__throw_length_errorPKc("thrown by a static initialiser");
}

// Does what one line says.
static int enter(const char* line) {
  const int has_schema = *line != '+' && *line != '*';
  const int has_kernel = *line != '-';
  void* library = *line == '*' ? other_kernels : kernels;
  if (!has_kernel || !has_schema) ++line;
  char name[ROOM];
  snprintf(name, sizeof(name), "%.*s", (int)strcspn(line, "("), line);
  return (has_schema && aoti_torch_library_def(schemas, line) != 0) ||
         (has_kernel &&
          torch_library_impl(library, name, &copy, UINT64_C(0x020a000000000000)) != 0);
}

// Does what the lines say that begin with "=", if `is_initialiser`, or else the others.
static const char* enter_all(char* given, int is_initialiser) {
  aoti_torch_library_init_fragment("custom_pypto", "plugin_library.c", 0, &schemas);
  aoti_torch_library_init_impl("custom_pypto", "CPU", "plugin_library.c", 0, &kernels);
  aoti_torch_library_init_impl("custom_pypto", "AutogradCPU", "plugin_library.c", 0,
                               &other_kernels);
  for (char* line = strtok(given, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    if ((*line == '=') != is_initialiser) continue;
    if (line[0] == '=' && line[1] == '?') {
      fail(line + 2);
    } else if (enter(line + is_initialiser) != 0) {
      return line;
    }
  }
  return NULL;
}

__attribute__((constructor)) static void begin(void) {
  char given[ROOM];
  for (size_t i = 0; i < ROOM; ++i) given[i] = text[i];
  if (strchr(given, '=') == NULL) return;
  enter_all(given, 1);
  schemas = kernels = other_kernels = NULL;
}

EXPORT int custom_pypto_register_v1(char* error, size_t error_size) {
  char given[ROOM];
  for (size_t i = 0; i < ROOM; ++i) given[i] = text[i];
  if (given[0] == '!') {
    snprintf(error, error_size, "%s", given + 1);
    return 1;
  }
  const char* failed = enter_all(given, 0);
  if (failed == NULL) return 0;
  snprintf(error, error_size, "%.*s: torch refused it", (int)strcspn(failed, "("), failed);
  custom_pypto_unregister_v1();
  return 1;
}
