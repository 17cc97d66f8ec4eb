// A plugin's library in C, for tests that need many: what it registers is written into the finished
// file by plugin_factory.py, so that one compilation, without torch's headers, serves all.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

// Schemas, each ended by a newline; or "!" and the error text of a registration that fails. "-"
// before a schema leaves the op without a kernel, "+" registers a kernel for the op of another.
static volatile char text[ROOM] = "CUSTOM_PYPTO_TEXT_GOES_HERE";

static void* schemas;
static void* kernels;

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
  if (schemas != NULL) aoti_torch_delete_library_object(schemas);
  kernels = schemas = NULL;
}

EXPORT int custom_pypto_register_v1(char* error, size_t error_size) {
  char given[ROOM];
  for (size_t i = 0; i < ROOM; ++i) given[i] = text[i];
  if (given[0] == '!') {
    snprintf(error, error_size, "%s", given + 1);
    return 1;
  }
  aoti_torch_library_init_fragment("custom_pypto", __FILE__, 0, &schemas);
  aoti_torch_library_init_impl("custom_pypto", "CPU", __FILE__, 0, &kernels);
  for (char* schema = strtok(given, "\n"); schema != NULL; schema = strtok(NULL, "\n")) {
    const int has_kernel = *schema != '-';
    const int has_schema = *schema != '+';
    if (!has_kernel || !has_schema) ++schema;
    char name[ROOM];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(schema, "("), schema);
    if ((has_schema && aoti_torch_library_def(schemas, schema) != 0) ||
        (has_kernel &&
         torch_library_impl(kernels, name, &copy, UINT64_C(0x020a000000000000)) != 0)) {
      snprintf(error, error_size, "%s: API call failed at", name);
      custom_pypto_unregister_v1();
      return 1;
    }
  }
  return 0;
}
