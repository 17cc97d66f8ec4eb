// aclnn matrix products. Their last int8_t is CANN's cubeMathType: the lowest precision that the
// matrix units may use.
#include "custom_pypto_simulator/fractal_nz.h"
#include "pattern.h"

CUSTOM_PYPTO_SIM_ACLNN(aclnnMatmulWeightNz, at::Tensor self, const aclTensor& mat2, at::Tensor& out,
                       int8_t) {
  out.copy_(at::mm(self, custom_pypto_simulator::from_fractal_nz(mat2)));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnMm, at::Tensor self, at::Tensor other, at::Tensor& out, int8_t) {
  out.copy_(at::mm(self, other));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnMatmul, at::Tensor self, at::Tensor other, at::Tensor& out, int8_t) {
  out.copy_(at::matmul(self, other));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnBatchMatMul, at::Tensor self, at::Tensor other, at::Tensor& out,
                       int8_t) {
  out.copy_(at::bmm(self, other));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnAddmm, at::Tensor self, at::Tensor first, at::Tensor second,
                       at::Scalar beta, at::Scalar alpha, at::Tensor& out, int8_t) {
  out.copy_(at::addmm(self, first, second, beta, alpha));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnBaddbmm, at::Tensor self, at::Tensor first, at::Tensor second,
                       at::Scalar beta, at::Scalar alpha, at::Tensor& out, int8_t) {
  out.copy_(at::baddbmm(self, first, second, beta, alpha));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnSoftmax, at::Tensor self, int64_t dim, at::Tensor& out) {
  out.copy_(at::softmax(self, dim, out.scalar_type()));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnLogSoftmax, at::Tensor self, int64_t dim, at::Tensor& out) {
  out.copy_(at::log_softmax(self, dim, out.scalar_type()));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnSoftmaxBackward, at::Tensor grad, at::Tensor output, int64_t dim,
                       at::Tensor& out) {
  out.copy_(at::_softmax_backward_data(grad, output, dim, output.scalar_type()));
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
CUSTOM_PYPTO_SIM_ACLNN(aclnnThresholdBackward, at::Tensor grad, at::Tensor self,
                       at::Scalar threshold, at::Tensor& out) {
  out.copy_(at::threshold_backward(grad, self, threshold));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnSigmoidBackward, at::Tensor grad, at::Tensor output, at::Tensor& out) {
  out.copy_(at::sigmoid_backward(grad, output));
}
CUSTOM_PYPTO_SIM_ACLNN(aclnnTanhBackward, at::Tensor grad, at::Tensor output, at::Tensor& out) {
  out.copy_(at::tanh_backward(grad, output));
}
