// An empty kernel, to time its launch.
#include <custom_pypto_simulator/aclnn.h>

CUSTOM_PYPTO_SIM_ACLNN(aclnnBenchmarkNoOp, at::Tensor, at::Tensor&) {}
