// add_custom's kernels: rows of any dtype and step.
#include "cpu/kernels.h"
#include "wire.h"

namespace custom_pypto_add_custom {
namespace {

// In the order of the test's dtypes.
constexpr AddRow* Kernels::* kRowKernels[] = {&Kernels::f16, &Kernels::bf16, &Kernels::f32,
                                              &Kernels::f64, &Kernels::i32,  &Kernels::i64};

void add() {
  const int64_t dtype = driver::read_integer();
  const int64_t size = driver::read_integer();
  const int64_t count = driver::read_integer();
  const driver::Bytes self = driver::read_bytes();
  const int64_t self_first = driver::read_integer();
  const int64_t self_step = driver::read_integer();
  const driver::Bytes other = driver::read_bytes();
  const int64_t other_first = driver::read_integer();
  const int64_t other_step = driver::read_integer();
  const driver::Bytes out(count * size);
  (kernels().*kRowKernels[dtype])(self.as() + self_first * size, self_step,
                                  other.as() + other_first * size, other_step, out.as(), count);
  driver::write_bytes(out.as(), out.size());
}

}  // namespace
}  // namespace custom_pypto_add_custom

int main() {
  using namespace custom_pypto_add_custom;
  return driver::serve([](int64_t) { add(); });
}
