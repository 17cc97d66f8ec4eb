// libhccl.so: collectives are not emulated; torchair sets this one option when it starts.
#include <array>
#include <cstddef>
#include <cstdint>

namespace {

union Value {
  int32_t integer;
};

std::array<Value, 64> values{};

}  // namespace

extern "C" __attribute__((visibility("default"))) int HcclSetConfig(int key, Value value) {
  if (key < 0 || static_cast<size_t>(key) >= values.size()) return 1;
  values[static_cast<size_t>(key)] = value;
  return 0;
}

extern "C" __attribute__((visibility("default"))) int HcclGetConfig(int key, Value* value) {
  if (key < 0 || static_cast<size_t>(key) >= values.size()) return 1;
  *value = values[static_cast<size_t>(key)];
  return 0;
}
