// A kernel as it was built from the headers of an older simulator.
#undef CUSTOM_PYPTO_SIM_ABI
#define CUSTOM_PYPTO_SIM_ABI "torch 2.13.0, simulator headers of last year"
#include <custom_pypto_simulator/aclnn.h>

CUSTOM_PYPTO_SIM_ACLNN(aclnnTestOutdated, at::Tensor self, at::Tensor& out) { out.copy_(self); }
