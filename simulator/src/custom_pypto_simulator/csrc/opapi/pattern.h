// Macros for the most common aclnn signatures. Each use defines one op by an expression of its
// inputs. torch_npu has chosen the output's type; copy_ converts to it.
#pragma once

#include <ATen/ATen.h>

#include "custom_pypto_simulator/aclnn.h"

// The inputs follow the expression.
#define CUSTOM_PYPTO_SIM_OUT(name, expression, ...) \
  CUSTOM_PYPTO_SIM_ACLNN(aclnn##name, __VA_ARGS__, at::Tensor& out) { out.copy_(expression); }

#define CUSTOM_PYPTO_SIM_UNARY(name, expression) \
  CUSTOM_PYPTO_SIM_OUT(name, expression, at::Tensor self)

#define CUSTOM_PYPTO_SIM_UNARY_INPLACE(name, expression) \
  CUSTOM_PYPTO_SIM_UNARY(name, expression)               \
  CUSTOM_PYPTO_SIM_ACLNN(aclnnInplace##name, at::Tensor& self) { self.copy_(expression); }

#define CUSTOM_PYPTO_SIM_BINARY(name, Other, expression) \
  CUSTOM_PYPTO_SIM_OUT(name, expression, at::Tensor self, Other other)

#define CUSTOM_PYPTO_SIM_BINARY_INPLACE(name, Other, expression)              \
  CUSTOM_PYPTO_SIM_BINARY(name, Other, expression)                            \
  CUSTOM_PYPTO_SIM_ACLNN(aclnnInplace##name, at::Tensor& self, Other other) { \
    self.copy_(expression);                                                   \
  }

// The op with a tensor and the op with a scalar, each out of place and in place.
#define CUSTOM_PYPTO_SIM_BINARY_PAIR(with_tensor, with_scalar, function)          \
  CUSTOM_PYPTO_SIM_BINARY_INPLACE(with_tensor, at::Tensor, function(self, other)) \
  CUSTOM_PYPTO_SIM_BINARY_INPLACE(with_scalar, at::Scalar, function(self, other))

#define CUSTOM_PYPTO_SIM_SCALED(name, Other, expression)                                        \
  CUSTOM_PYPTO_SIM_OUT(name, expression, at::Tensor self, Other other, at::Scalar alpha)        \
  CUSTOM_PYPTO_SIM_ACLNN(aclnnInplace##name, at::Tensor& self, Other other, at::Scalar alpha) { \
    self.copy_(expression);                                                                     \
  }
