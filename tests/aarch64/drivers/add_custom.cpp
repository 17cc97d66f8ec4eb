// add_custom's kernels: sums of dense memory of any dtype.
#include "cpu/kernels.h"
#include "wire.h"

namespace custom_pypto_add_custom {
namespace {

// In the order of the test's dtypes.
constexpr Add* Kernels::* kKernels[] = {&Kernels::float16, &Kernels::bfloat16, &Kernels::float32,
                                        &Kernels::float64, &Kernels::int32,    &Kernels::int64};

void add() {
  const int64_t dtype = driver::read_integer();
  const int64_t count = driver::read_integer();
  const driver::Bytes self = driver::read_bytes();
  const driver::Bytes other = driver::read_bytes();
  const driver::Bytes out(self.size());
  (kernels().*kKernels[dtype])(self.as(), other.as(), out.as(), count);
  driver::write_bytes(out.as(), out.size());
}

}  // namespace
}  // namespace custom_pypto_add_custom

int main() {
  using namespace custom_pypto_add_custom;
  return driver::serve([](int64_t) { add(); });
}
