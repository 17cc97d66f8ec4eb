// Fault injection: the k-th call of a kind fails, once.
//
// Kinds: "allocation" (aclrtMalloc*), "creation" (aclCreate* of tensors, scalars, arrays, lists),
// "phase1" (aclnn*GetWorkspaceSize), "phase2" (aclnn*), "execution" (the op itself, on its stream),
// and "call", which counts every call of the first four. CUSTOM_PYPTO_SIM_FAIL=kind:k[,kind:k] arms
// them when the first call is counted; custom_pypto_sim_fail arms them later.
#pragma once

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {

// Counts one call; true, with the recent error set, if it must fail.
bool fault(FaultKind kind, const char* name);

}  // namespace custom_pypto_simulator
