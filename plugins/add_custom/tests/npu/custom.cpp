// The kernel that an opp package of this op has, simulated: it computes with the CPU kernel.
#include <custom_pypto_simulator/aclnn.h>

CUSTOM_PYPTO_SIM_ACLNN(aclnnAddCustom, at::Tensor x, at::Tensor y, at::Tensor& z) {
  z.copy_(custom_pypto_simulator::call<at::Tensor>("custom_pypto::add_custom", x, y));
}
