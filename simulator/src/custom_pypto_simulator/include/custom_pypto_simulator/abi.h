// What a library of simulated kernels was compiled against. The two sides of the interface are
// built apart, each from the headers of its day, and pass each other C++ objects: they must be
// equal.
#pragma once

#ifndef CUSTOM_PYPTO_SIM_ABI
#error "compile simulated kernels with `custom-pypto-sim kernels`, which knows what is installed"
#endif

extern "C" {

// 0 when `abi`, of the library that has the op `name`, is that of this process. Else a status code,
// with the recent error set. This function and the place of `abi` in Op stay as they are for ever.
int custom_pypto_sim_check_abi(const char* abi, const char* name);
}
