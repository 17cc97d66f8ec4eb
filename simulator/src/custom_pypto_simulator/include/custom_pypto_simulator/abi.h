// The ABI of a library of simulated kernels: the headers that it was compiled against. Simulator
// and kernels are built separately and pass each other C++ objects, so these must be equal.
#pragma once

#ifndef CUSTOM_PYPTO_SIM_ABI
#error "compile simulated kernels with `custom-pypto-sim kernels`, which knows what is installed"
#endif

extern "C" {

// 0 when `abi`, of the library of op `name`, is that of this process; else a status code, with the
// recent error set. This function and the position of `abi` in Op never change.
int custom_pypto_sim_check_abi(const char* abi, const char* name);
}
