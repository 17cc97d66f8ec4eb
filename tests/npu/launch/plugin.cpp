// A plugin whose ops launch the kernels of kernels.cpp.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/direct_launch.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/plugin.h>
#include <dlfcn.h>

#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using custom_pypto::ScalarType;
using custom_pypto::npu::KernelChoice;
using custom_pypto::npu::TypedScalar;
using torch::stable::Tensor;

Tensor everything(const Tensor& self, const std::optional<Tensor>& bias,
                  const std::vector<Tensor>& list, std::string_view text,
                  const std::optional<std::string>& maybe_text, const std::vector<int64_t>& numbers,
                  const std::vector<double>& reals, const std::vector<bool>& flags, double real,
                  int64_t number, bool flag, ScalarType dtype, double scalar) {
  Tensor out = custom_pypto::empty_like_contiguous(self);
  EXEC_NPU_CMD(aclnnEverything, self, bias, list, text, maybe_text, numbers, reals, flags, real,
               number, flag, dtype, TypedScalar(scalar), out);
  return out;
}

Tensor layout(const Tensor& self) {
  Tensor out = custom_pypto::empty({2 * self.dim() + 1}, ScalarType::Long, self);
  EXEC_NPU_CMD(aclnnLayout, self, out);
  return out;
}

Tensor raw_layout(const Tensor& self, const std::vector<int64_t>& sizes) {
  const auto rank = static_cast<int64_t>(sizes.size());
  Tensor out = custom_pypto::empty({2 * rank + 1}, ScalarType::Long, self);
  const custom_pypto::npu::RawTensor raw{self, sizes};
  EXEC_NPU_CMD(aclnnLayout, raw, out);
  return out;
}

const KernelChoice number_kernel("test_number", {"aclnnNumber"});

Tensor number(const Tensor& like, int64_t value) {
  Tensor out = custom_pypto::empty_like_contiguous(like);
  custom_pypto::npu::launch(number_kernel.get(), value, out);
  return out;
}

// Gives the same kernel an argument of another C++ type.
Tensor maybe_number(const Tensor& like, std::optional<int64_t> value) {
  Tensor out = custom_pypto::empty_like_contiguous(like);
  custom_pypto::npu::launch(number_kernel.get(), value, out);
  return out;
}

Tensor opposite(const Tensor& like, int64_t value) {
  Tensor out = custom_pypto::empty_like_contiguous(like);
  EXEC_NPU_CMD(aclnnOpposite, value, out);
  return out;
}

Tensor missing(const Tensor& self) {
  EXEC_NPU_CMD(aclnnNobodyHasThis, self);
  return self;
}

// What stands for a kernel: host memory is the NPU's, and the stream runs it when its turn comes.
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

Tensor scaled(const Tensor& self, double factor) {
  Tensor out = custom_pypto::empty_like_contiguous(self);
  custom_pypto::npu::launch_direct("test_scaled", &scale_kernel, 8, self, out, self.numel(),
                                   factor);
  return out;
}

Tensor settings(const Tensor& like) {
  Tensor out = custom_pypto::empty({1}, ScalarType::Long, like);
  EXEC_NPU_CMD(aclnnSettings, out);
  return out;
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

Tensor cores(const Tensor& like) {
  Tensor out = custom_pypto::empty({1}, ScalarType::Float, like);
  custom_pypto::npu::launch_direct("test_cores", &cores_kernel, 1, out);
  return out;
}

// Refused before the kernel is called, when the two are on different devices.
Tensor scaled_like(const Tensor& self, const Tensor& out) {
  custom_pypto::npu::launch_direct("test_scaled_like", &scale_kernel, 8, self, out, self.numel(),
                                   2.0);
  return custom_pypto::empty_like_contiguous(out);
}

namespace allocation = custom_pypto::npu::detail;

allocation::ReturnedTensor reversed(const void* like, allocation::Sizes sizes) {
  const std::vector<int64_t> other(std::make_reverse_iterator(sizes.data + sizes.rank),
                                   std::make_reverse_iterator(sizes.data));
  return allocation::find_apply_tensor()(like, {other.data(), other.size()});
}

allocation::ReturnedTensor throwing(const void*, allocation::Sizes) {
  throw std::runtime_error("not that function");
}

// Whether results are allocated through torch_npu's C++ function, if it behaved like this.
bool allocates(const Tensor& like, std::string_view behaviour) {
  allocation::ApplyTensor function = allocation::find_apply_tensor();
  if (behaviour == "reversed") function = &reversed;
  if (behaviour == "throwing") function = &throwing;
  return allocation::checked(function, like) != nullptr;
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "test_everything(Tensor self, Tensor? bias, Tensor[] list, str text, str? maybe_text, "
          "int[] numbers, float[] reals, bool[] flags, float real, int number, bool flag, "
          "ScalarType dtype, float scalar) -> Tensor"))
      .impl<&everything>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_layout(Tensor self) -> Tensor"))
      .impl<&layout>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_raw_layout(Tensor self, int[] sizes) -> Tensor"))
      .impl<&raw_layout>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_scaled(Tensor self, float factor) -> Tensor"))
      .impl<&scaled>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_scaled_like(Tensor self, Tensor out) -> Tensor"))
      .impl<&scaled_like>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_settings(Tensor like) -> Tensor"))
      .impl<&settings>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_cores(Tensor like) -> Tensor")).impl<&cores>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_number(Tensor like, int value) -> Tensor"))
      .impl<&number>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_maybe_number(Tensor like, int? value) -> Tensor"))
      .impl<&maybe_number>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_opposite(Tensor like, int value) -> Tensor"))
      .impl<&opposite>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_allocates(Tensor like, str behaviour) -> bool"))
      .impl<&allocates>("PrivateUse1");
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_missing(Tensor self) -> Tensor"))
      .impl<&missing>("PrivateUse1");
}
