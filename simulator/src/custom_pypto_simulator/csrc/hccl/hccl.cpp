// libhccl.so: collectives are not emulated; torchair sets one option when it starts.
#include <cstdint>

union Value {
  int32_t integer;
};

extern "C" __attribute__((visibility("default"))) int HcclSetConfig(int, Value) { return 0; }
