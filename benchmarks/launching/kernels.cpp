// A kernel that does nothing, to time what it costs to launch it.
#include <custom_pypto_simulator/aclnn.h>

CUSTOM_PYPTO_SIM_ACLNN(aclnnBenchmarkNothing, at::Tensor, at::Tensor&) {}
