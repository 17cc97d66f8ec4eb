// Kernels that show what a launch marshals; plugin.cpp launches them.
#include <ATen/ops/tensor.h>
#include <custom_pypto_simulator/aclnn.h>

#include <string>
#include <vector>

namespace {

struct Workspace {
  template <typename... Args>
  uint64_t operator()(const at::Tensor& self, const Args&...) const {
    return static_cast<uint64_t>(4 * self.numel());
  }
};
constexpr Workspace workspace_size;

// A size that shows what phase 1 sees: 1000 times the deterministic level, and the cores it may
// use.
uint64_t settings(const at::Tensor&) {
  int64_t level = 0;
  uint32_t cores = 0;
  aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &level);
  aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &cores);
  return static_cast<uint64_t>(1000 * level) + cores;
}

uint64_t not_negative(int64_t number, const at::Tensor&) {
  TORCH_CHECK_VALUE(number >= 0, "refuses the number ", number);
  return 0;
}

}  // namespace

// out = self + bias + sum(list) + a number that every other argument has a part in, by way of the
// workspace.
CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnEverything, workspace_size, at::Tensor self,
                               std::optional<at::Tensor> bias,
                               std::optional<std::vector<at::Tensor>> list, std::string text,
                               std::optional<std::string> maybe_text, std::vector<int64_t> numbers,
                               std::vector<float> reals, std::vector<bool> flags, double real,
                               int64_t number, bool flag, at::ScalarType dtype, at::Scalar scalar,
                               at::Tensor& out) {
  double sum = real + number + (flag ? 1000 : 0) + scalar.toDouble();
  sum += 10 * text.size() + (maybe_text ? 100 * maybe_text->size() : 0);
  for (const int64_t each : numbers) sum += each;
  for (const float each : reals) sum += each;
  for (const bool each : flags) sum += each ? 10000 : 0;
  if (dtype == at::kBFloat16) sum += 100000;
  const at::Tensor work = at::from_blob(custom_pypto_simulator::workspace().data, self.sizes(),
                                        at::TensorOptions().dtype(at::kFloat));
  work.copy_(self);
  if (bias) work.add_(*bias);
  if (list) {
    for (const at::Tensor& each : *list) work.add_(each);
  }
  out.copy_(work.add_(sum));
}

// out = the shape, strides and offset that arrived.
CUSTOM_PYPTO_SIM_ACLNN(aclnnLayout, const aclTensor& self, at::Tensor& out) {
  std::vector<int64_t> layout(self.shape.begin(), self.shape.end());
  layout.insert(layout.end(), self.strides.begin(), self.strides.end());
  layout.push_back(self.offset);
  out.copy_(at::tensor(layout, at::kLong));
}

// out = what phase 1 saw of the settings.
CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnSettings, settings, at::Tensor& out) {
  out.fill_(static_cast<int64_t>(custom_pypto_simulator::workspace().bytes));
}

// Phase 1 refuses a number below 0, and names it.
CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnNumber, not_negative, int64_t number, at::Tensor& out) {
  out.fill_(number);
}

// out[i] = 2 * xs[i] + more[i].
CUSTOM_PYPTO_SIM_ACLNN(aclnnDoubled, std::vector<at::Tensor> xs,
                       std::optional<std::vector<at::Tensor>> more, std::vector<at::Tensor> out) {
  for (std::size_t i = 0; i < xs.size(); ++i) {
    out[i].copy_(more ? 2 * xs[i] + (*more)[i] : 2 * xs[i]);
  }
}

// Has the signature of aclnnNumber.
CUSTOM_PYPTO_SIM_ACLNN(aclnnOpposite, int64_t number, at::Tensor& out) { out.fill_(-number); }
