// In which order a 2-D weight's bytes lie: as its shape says, or declared to be fractal NZ.
#pragma once

namespace custom_pypto_sparse_attention {

// For messages: what declares that 2-D weights hold fractal NZ bytes.
inline constexpr const char* kNzDeclaration =
    "CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS=nz or declare_nz_weights()";

// Whether 2-D weights are declared to hold fractal NZ bytes: as Python's declare_nz_weights said
// last, else as the variable said at the first call.
// Throws std::runtime_error when the variable says neither nz nor plain.
bool weights_are_nz();

// Why a plain weight costs time on an NPU, and what to do; null but for the first time in a
// process.
const char* plain_weight_warning();

}  // namespace custom_pypto_sparse_attention
