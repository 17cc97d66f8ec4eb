#include "kernels.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

template <class T>
inline T sum(T a, T b) {
  return a + b;
}
template <>
inline Bf16 sum(Bf16 a, Bf16 b) {
  return from_float<Bf16>(to_float(a) + to_float(b));
}
template <>
inline Fp16 sum(Fp16 a, Fp16 b) {
  return from_float<Fp16>(to_float(a) + to_float(b));
}

// Adds the leading elements of dense rows vector by vector and returns how many those are: of
// 16-bit numbers where the instruction set converts them by vectors. All else the compiler
// vectorizes as well.
template <class T>
inline int64_t add_vectors(const T* self, const T* other, T* out, int64_t count) {
  int64_t i = 0;
  if constexpr (sizeof(T) == 2 && Isa::CUSTOM_PYPTO_CPU_ISA != Isa::portable) {
    for (; i + kLanes <= count; i += kLanes) {
      store(out + i, add(load(self + i), load(other + i)));
    }
  }
  return i;
}

template <class T>
void add_row(const void* self, int64_t self_step, const void* other, int64_t other_step, void* out,
             int64_t count) {
  const T* a = static_cast<const T*>(self);
  const T* b = static_cast<const T*>(other);
  T* c = static_cast<T*>(out);
  if (self_step == 1 && other_step == 1) {
    for (int64_t i = add_vectors(a, b, c, count); i < count; ++i) c[i] = sum(a[i], b[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) c[i] = sum(a[i * self_step], b[i * other_step]);
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA

namespace custom_pypto_add_custom {

namespace isa = custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA;

// Integers are added as unsigned ones, which wrap on overflow as torch's do.
constexpr Kernels CUSTOM_PYPTO_OF_ISA(kernels) = {
    &isa::add_row<isa::Fp16>, &isa::add_row<isa::Bf16>, &isa::add_row<float>,
    &isa::add_row<double>,    &isa::add_row<uint32_t>,  &isa::add_row<uint64_t>,
};

}  // namespace custom_pypto_add_custom
