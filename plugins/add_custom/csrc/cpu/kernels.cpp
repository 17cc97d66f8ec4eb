// The loops of add_custom, and the table of kernels of one instruction set.
#include <custom_pypto_blocks/cpu/vectors.h>

#include "add_kernels.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

template <class T>
T sum(T a, T b) {
  if constexpr (sizeof(T) == 2) {
    return from_float<T>(to_float(a) + to_float(b));
  } else {
    return a + b;
  }
}

template <class T>
void add(const void* self, const void* other, void* out, int64_t count) {
  const T* a = static_cast<const T*>(self);
  const T* b = static_cast<const T*>(other);
  T* c = static_cast<T*>(out);
  int64_t i = 0;
  if constexpr (sizeof(T) == 2 && Isa::CUSTOM_PYPTO_CPU_ISA != Isa::portable) {
    // Here load() and store() convert whole vectors. All else the compiler vectorizes as well.
    for (; i + kLanes <= count; i += kLanes) store(c + i, add(load(a + i), load(b + i)));
  }
  for (; i < count; ++i) c[i] = sum(a[i], b[i]);
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

namespace custom_pypto_add_custom {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

// Integers are added as unsigned ones, which wrap on overflow as torch's do.
constexpr Kernels CUSTOM_PYPTO_OF_ISA(kernels) = {
    &isa::add<isa::Fp16>, &isa::add<isa::Bf16>, &isa::add<float>,
    &isa::add<double>,    &isa::add<uint32_t>,  &isa::add<uint64_t>,
};

}  // namespace custom_pypto_add_custom
