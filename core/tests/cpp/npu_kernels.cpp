// A plugin that launches kernels on an NPU, for test_npu_kernels.py.
#include <custom_pypto/npu/cann_version.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/plugin.h>

#include <string>
#include <vector>

namespace {

using custom_pypto::npu::CannVersion;
using custom_pypto::npu::Kernel;
using custom_pypto::npu::KernelChoice;
using custom_pypto::npu::TypedScalar;
using torch::stable::Tensor;

const KernelChoice choice("npu_two", {"aclnnFirst", "aclnnSecond"});
const KernelChoice optional_choice("npu_optional", {"aclnnOptional"});

std::string chosen() {
  const Kernel& kernel = choice.get();
  return kernel.symbol + " " + kernel.library;
}

std::string found() {
  const Kernel* kernel = optional_choice.find();
  return kernel == nullptr ? "none" : kernel->library;
}

void first() { EXEC_NPU_CMD(aclnnFirst, 1); }

// "<", "=" or ">", "?" for what is no version.
std::string version_order(const std::string& left, const std::string& right) {
  const auto a = CannVersion::parse(left);
  const auto b = CannVersion::parse(right);
  if (!a.has_value() || !b.has_value()) return "?";
  return *a < *b ? "<" : *b < *a ? ">" : "=";
}

bool knows_cann_version() { return custom_pypto::npu::cann_version().has_value(); }

// Every kind of argument that needs no device.
void kinds(int64_t number, double real, bool flag, std::string_view text,
           const std::optional<std::string>& maybe_text, const std::vector<int64_t>& numbers,
           const std::vector<double>& reals, const std::vector<bool>& flags,
           const std::optional<double>& maybe_real) {
  EXEC_NPU_CMD(aclnnKinds, number, real, flag, text, maybe_text, numbers, reals, flags, maybe_real,
               custom_pypto::ScalarType::BFloat16, TypedScalar(0.5), std::nullopt, "literal");
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_npu_chosen() -> str"))
      .impl<&chosen>("CompositeExplicitAutograd");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_npu_found() -> str"))
      .impl<&found>("CompositeExplicitAutograd");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_npu_first() -> ()"))
      .impl<&first>("CompositeExplicitAutograd");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_npu_version_order(str left, str right) -> str"))
      .impl<&version_order>("CompositeExplicitAutograd");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_npu_knows_cann_version() -> bool"))
      .impl<&knows_cann_version>("CompositeExplicitAutograd");
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "headers_npu_kinds(int number, float real, bool flag, str text, str? maybe_text, "
          "int[] numbers, float[] reals, bool[] flags, float? maybe_real) -> ()"))
      .impl<&kinds>("CompositeExplicitAutograd");
}
