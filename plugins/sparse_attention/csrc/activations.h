// The activations of the ops: what core knows of them, and the constants of their norms.
#pragma once

#include <custom_pypto/activations.h>

#include "common.h"

namespace custom_pypto_sparse_attention {

using custom_pypto::Angles;
using custom_pypto::bytes_of;
using custom_pypto::element_of;
using custom_pypto::read_floats;
using custom_pypto::to_contiguous;
using custom_pypto::visit_element;

inline constexpr float kRmsEpsilon = 1e-5f;
inline constexpr float kLayerNormEpsilon = 1e-6f;

// How many tokens x [*tokens, H] holds.
int64_t token_count(const custom_pypto::Span& tokens);

}  // namespace custom_pypto_sparse_attention
