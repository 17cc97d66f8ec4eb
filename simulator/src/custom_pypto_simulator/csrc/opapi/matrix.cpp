// aclnn matrix products. Their last int8_t is CANN's cubeMathType: the lowest precision that the
// matrix units may use.
#include "custom_pypto_simulator/fractal_nz.h"
#include "pattern.h"

using custom_pypto_simulator::from_fractal_nz;

#define CUSTOM_PYPTO_SIM_MATRIX(name, expression, ...)                        \
  CUSTOM_PYPTO_SIM_ACLNN(aclnn##name, __VA_ARGS__, at::Tensor& out, int8_t) { \
    out.copy_(expression);                                                    \
  }

CUSTOM_PYPTO_SIM_ACLNN(aclnnRmsNorm, at::Tensor self, at::Tensor weight, double epsilon,
                       at::Tensor& out, at::Tensor& scale) {
  const auto wide = self.to(at::kFloat);
  std::vector<int64_t> dims;
  for (int64_t i = -weight.dim(); i < 0; ++i) dims.push_back(i);
  const auto inverse = at::rsqrt(at::mean(wide * wide, dims, true) + epsilon);
  out.copy_(wide * inverse * weight.to(at::kFloat));
  scale.copy_(inverse);
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnLayerNorm, at::Tensor self, std::vector<int64_t> shape,
                       std::optional<at::Tensor> weight, std::optional<at::Tensor> bias,
                       double epsilon, at::Tensor& out, std::optional<at::Tensor> mean,
                       std::optional<at::Tensor> scale) {
  const auto [result, center, inverse] = at::native_layer_norm(self, shape, weight, bias, epsilon);
  out.copy_(result);
  if (mean) mean->copy_(center);
  if (scale) scale->copy_(inverse);
}

// clang-format off
CUSTOM_PYPTO_SIM_MATRIX(MatmulWeightNz, at::mm(self, from_fractal_nz(mat2)),
                        at::Tensor self, const aclTensor& mat2)
CUSTOM_PYPTO_SIM_MATRIX(BatchMatMul, at::bmm(self, other), at::Tensor self, at::Tensor other)
CUSTOM_PYPTO_SIM_MATRIX(Mm, at::mm(self, other), at::Tensor self, at::Tensor other)
CUSTOM_PYPTO_SIM_MATRIX(Matmul, at::matmul(self, other), at::Tensor self, at::Tensor other)
CUSTOM_PYPTO_SIM_MATRIX(Addmm, at::addmm(self, first, second, beta, alpha),
                        at::Tensor self, at::Tensor first, at::Tensor second, at::Scalar beta,
                        at::Scalar alpha)
CUSTOM_PYPTO_SIM_MATRIX(Baddbmm, at::baddbmm(self, first, second, beta, alpha),
                        at::Tensor self, at::Tensor first, at::Tensor second, at::Scalar beta,
                        at::Scalar alpha)
CUSTOM_PYPTO_SIM_OUT(Softmax, at::softmax(self, dim, out.scalar_type()),
                     at::Tensor self, int64_t dim)
CUSTOM_PYPTO_SIM_OUT(LogSoftmax, at::log_softmax(self, dim, out.scalar_type()),
                     at::Tensor self, int64_t dim)
CUSTOM_PYPTO_SIM_OUT(SoftmaxBackward,
                     at::_softmax_backward_data(grad, output, dim, output.scalar_type()),
                     at::Tensor grad, at::Tensor output, int64_t dim)
CUSTOM_PYPTO_SIM_OUT(ThresholdBackward, at::threshold_backward(grad, self, threshold),
                     at::Tensor grad, at::Tensor self, at::Scalar threshold)
CUSTOM_PYPTO_SIM_OUT(SigmoidBackward, at::sigmoid_backward(grad, output),
                     at::Tensor grad, at::Tensor output)
CUSTOM_PYPTO_SIM_OUT(TanhBackward, at::tanh_backward(grad, output),
                     at::Tensor grad, at::Tensor output)
// clang-format on
