// A kernel of CANN before 8.5.0.alpha003, simulated: the parameters are others under the same name.
#include <custom_pypto_simulator/aclnn.h>

// The flag is where later versions have weight_quant_mode. Nobody may launch it without knowing.
CUSTOM_PYPTO_SIM_ACLNN(aclnnMlaPrologV3WeightNz, at::Tensor, const aclTensor&, const aclTensor&,
                       at::Tensor, const aclTensor&, at::Tensor, at::Tensor, at::Tensor, at::Tensor,
                       at::Tensor&, at::Tensor&, at::Tensor, std::optional<at::Tensor>,
                       std::optional<at::Tensor>, std::optional<at::Tensor>,
                       std::optional<at::Tensor>, std::optional<at::Tensor>,
                       std::optional<at::Tensor>, std::optional<at::Tensor>,
                       std::optional<at::Tensor>, std::optional<at::Tensor>, double, double,
                       std::string, bool, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       double, double, at::Tensor&, at::Tensor&, std::optional<at::Tensor>,
                       at::Tensor&, std::optional<at::Tensor>) {
  throw std::logic_error("launched by someone who cannot know its parameters");
}
