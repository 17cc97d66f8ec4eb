// A plugin whose ops launch the kernels of kernels.cpp; some by a launch line of ops.toml.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/direct_launch.h>
#include <custom_pypto/npu/launch.h>
#include <dlfcn.h>

#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ops.h"

namespace {

using custom_pypto::ScalarType;
using custom_pypto::npu::TypedScalar;
using torch::stable::Tensor;
using namespace ops;

test_everything::Outputs everything(const test_everything::Arguments& a,
                                    const test_everything::CallShape&) {
  Tensor out = custom_pypto::empty_like_contiguous(a.self);
  EXEC_NPU_CMD(aclnnEverything, a.self, a.bias, a.list, a.text, a.maybe_text, a.numbers, a.reals,
               a.flags, a.real, a.number, a.flag, a.dtype, TypedScalar(a.scalar), out);
  return {out};
}

test_layout::Outputs layout(const test_layout::Arguments& a, const test_layout::CallShape&) {
  Tensor out = custom_pypto::empty({2 * a.self.dim() + 1}, ScalarType::Long, a.self);
  EXEC_NPU_CMD(aclnnLayout, a.self, out);
  return {out};
}

test_raw_layout::Outputs raw_layout(const test_raw_layout::Arguments& a,
                                    const test_raw_layout::CallShape&) {
  const auto rank = static_cast<int64_t>(a.sizes.size());
  Tensor out = custom_pypto::empty({2 * rank + 1}, ScalarType::Long, a.self);
  const custom_pypto::npu::RawTensor raw{a.self, a.sizes};
  EXEC_NPU_CMD(aclnnLayout, raw, out);
  return {out};
}

// Replaces a kernel: host memory is the NPU's, and the stream runs it in its turn.
struct Scale {
  const float* in;
  float* out;
  int64_t count;
  float factor;
};

int run_scale(void* state) {
  const std::unique_ptr<Scale> scale(static_cast<Scale*>(state));
  for (int64_t i = 0; i < scale->count; ++i) scale->out[i] = scale->in[i] * scale->factor;
  return 0;
}

int scale_kernel(uint32_t blocks, void* l2ctrl, void* stream, const float* in, float* out,
                 int32_t count, float factor) {
  if (blocks != 8 || l2ctrl != nullptr) return 1;
  if (count == 13) return 507899;
  using Enqueue = int (*)(void*, const char*, int (*)(void*), void*, void (*)(void*));
  static const auto enqueue =
      reinterpret_cast<Enqueue>(dlsym(RTLD_DEFAULT, "custom_pypto_sim_enqueue"));
  auto scale = std::make_unique<Scale>(Scale{in, out, count, factor});
  return enqueue(stream, "scale", &run_scale, scale.release(), [](void*) {});
}

test_scaled::Outputs scaled(const test_scaled::Arguments& a, const test_scaled::CallShape&) {
  Tensor out = custom_pypto::empty_like_contiguous(a.like.value_or(a.self));
  custom_pypto::npu::launch_direct("test_scaled", &scale_kernel, 8, a.self, out, a.self.numel(),
                                   a.factor);
  return {out};
}

// Writes how many cores the thread that launches may use.
int cores_kernel(uint32_t, void*, void* stream, float* out) {
  using CoresOf = int (*)(int, uint32_t*);
  static const auto cores_of =
      reinterpret_cast<CoresOf>(dlsym(RTLD_DEFAULT, "aclrtGetResInCurrentThread"));
  static const float one = 1;
  uint32_t cores = 0;
  cores_of(0, &cores);
  return scale_kernel(8, nullptr, stream, &one, out, 1, static_cast<float>(cores));
}

test_cores::Outputs cores(const test_cores::Arguments& a, const test_cores::CallShape&) {
  Tensor out = custom_pypto::empty({1}, ScalarType::Float, a.like);
  custom_pypto::npu::launch_direct("test_cores", &cores_kernel, 1, out);
  return {out};
}

namespace allocation = custom_pypto::npu::detail;

allocation::ReturnedTensor reversed(const void* like, custom_pypto::IntHeaderOnlyArrayRef sizes) {
  const std::vector<int64_t> other(std::make_reverse_iterator(sizes.end()),
                                   std::make_reverse_iterator(sizes.begin()));
  return allocation::find_apply_tensor()(like, other);
}

allocation::ReturnedTensor throwing(const void*, custom_pypto::IntHeaderOnlyArrayRef) {
  throw std::runtime_error("not that function");
}

// Whether results would be allocated through torch_npu's C++ function if it behaved like this.
test_allocates::Outputs allocates(const test_allocates::Arguments& a,
                                  const test_allocates::CallShape&) {
  allocation::ApplyTensor function = allocation::find_apply_tensor();
  if (a.behaviour == "reversed") function = &reversed;
  if (a.behaviour == "throwing") function = &throwing;
  return {allocation::checked(function, a.like) != nullptr};
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<test_everything>().impl<&everything>("PrivateUse1");
  plugin.def<test_layout>().impl<&layout>("PrivateUse1");
  plugin.def<test_raw_layout>().impl<&raw_layout>("PrivateUse1");
  plugin.def<test_scaled>().impl<&scaled>("PrivateUse1");
  plugin.def<test_settings>().impl<&test_settings::launch>("PrivateUse1");
  plugin.def<test_cores>().impl<&cores>("PrivateUse1");
  plugin.def<test_number>().impl<&test_number::launch>("PrivateUse1");
  plugin.def<test_doubled>().impl<&test_doubled::launch>("PrivateUse1");
  plugin.def<test_opposite>().impl<&test_opposite::launch>("PrivateUse1");
  plugin.def<test_allocates>().impl<&allocates>("PrivateUse1");
}
