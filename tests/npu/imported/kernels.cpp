// The kernels of the imported operators. Their parameters are in the order of functions.yaml and of
// the header of AddCustom, and each result shows where every argument arrived.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <custom_pypto_simulator/aclnn.h>

#include <string>
#include <vector>

CUSTOM_PYPTO_SIM_ACLNN(aclnnAddCustom, at::Tensor x, at::Tensor y, at::Tensor& z) {
  z.copy_(x + 10 * y);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnSweep, at::Tensor self, at::Tensor other, int64_t turns, double scale,
                       at::Tensor& out) {
  out.copy_(self + 10 * other + 100 * turns + 1000 * scale);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnTwist, int64_t turns, at::Tensor& out, at::Tensor self) {
  out.copy_(self + 10 * turns);
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnGatherRows, std::string mode, std::optional<at::Tensor> weight,
                       std::vector<int64_t> by, at::Tensor x, int64_t k, std::vector<bool> flip,
                       at::Tensor& places, at::Tensor& values) {
  values.copy_(x.narrow(1, 0, k) + (weight ? 10 * *weight : at::zeros({1})));
  places.copy_(at::arange(k) + 10 * by.at(0) + 100 * by.at(1) + 1000 * flip.at(0) +
               2000 * flip.at(1) + 10000 * static_cast<int64_t>(mode.size()));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnFix, std::string layout, at::Tensor& self, bool is_last,
                       std::vector<at::Tensor> parts, std::string text, int64_t axis) {
  self.add_(parts.at(0) + 10 * parts.at(1) + 100 * axis + 1000 * is_last +
            10000 * static_cast<int64_t>(text.size()) + (layout == "TND" ? 100000 : 0));
}
