// A plugin whose ops launch the kernels of kernels.cpp.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/plugin.h>

#include <optional>
#include <string>
#include <vector>

namespace {

using custom_pypto::ScalarType;
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

Tensor missing(const Tensor& self) {
  EXEC_NPU_CMD(aclnnNobodyHasThis, self);
  return self;
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
  plugin.def(CUSTOM_PYPTO_SCHEMA("test_missing(Tensor self) -> Tensor"))
      .impl<&missing>("PrivateUse1");
}
