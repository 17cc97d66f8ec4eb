// The aclnn functions: C functions that torch_npu calls by name, with a signature each, whose
// outputs it has allocated. First those that are one op of ATen: aclnn's name, ATen's, and the
// signature; then the others, as C++. Random numbers are reproducible by seed and offset, but not
// an NPU's.
//
// Operators of graphs stand in graph_operators.py. Both tables are needed: a graph's operator is a
// node with inputs, shapes and axes as tensors, and named attributes that may be left out; its
// names, such as "Greater" for aclnnGtTensor, and its results' types are its own. What the two
// could share are some 30 names of ATen's ops.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/List.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/randperm.h>

#include <numeric>

#include "custom_pypto_simulator/aclnn.h"
#include "custom_pypto_simulator/fractal_nz.h"

namespace {

using custom_pypto_simulator::DynamicOutput;
using custom_pypto_simulator::from_fractal_nz;
using Tensor = at::Tensor;
using Tensors = std::vector<at::Tensor>;
using Out = at::Tensor&;
using Scalar = at::Scalar;
using MaybeScalar = std::optional<at::Scalar>;
using Dims = std::vector<int64_t>;
using Dtype = at::ScalarType;
using CubeMath = int8_t;  // a precision

// Calls ATen's op by its name with the parameters in their order. Its results go into the outputs;
// torch_npu has chosen their types, to which copy_ converts. The first output of an `is_in_place`
// op is its first argument, too.
template <bool is_in_place, class... Args>
struct AtenOp {
  const char* name;

  void operator()(Args... args) const {
    torch::jit::Stack stack;
    std::vector<Tensor> outputs;
    (add<Args>(args, stack, outputs), ...);
    custom_pypto_simulator::run_aten(name, stack);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& result = stack.at(i).toTensor();
      if (!result.is_same(outputs[i])) outputs[i].copy_(result);
    }
  }

  template <class Arg>
  static void add(const std::remove_reference_t<Arg>& value, torch::jit::Stack& stack,
                  std::vector<Tensor>& outputs) {
    if constexpr (std::is_same_v<Arg, Out>) {
      if (is_in_place && outputs.empty()) stack.emplace_back(value);
      outputs.push_back(value);
    } else if constexpr (std::is_same_v<Arg, Scalar>) {
      // For a schema, a bool is no Scalar.
      stack.emplace_back(value.isBoolean() ? Scalar(value.toLong()) : value);
    } else if constexpr (!std::is_same_v<Arg, CubeMath>) {
      stack.emplace_back(value);
    }
  }
};

}  // namespace

#define ATEN_DEFINE(aclnn_name, aten_name, is_in_place, ...)                               \
  namespace {                                                                              \
  struct aclnn_name##_aten {                                                               \
    using Signature = void(__VA_ARGS__);                                                   \
    static constexpr const char* name() { return #aclnn_name; }                            \
    static auto pointer() { return AtenOp<is_in_place, __VA_ARGS__>{"aten::" aten_name}; } \
    template <class Kernel>                                                                \
    static typename Kernel::Plan plan() {                                                  \
      return nullptr;                                                                      \
    }                                                                                      \
  };                                                                                       \
  }                                                                                        \
  CUSTOM_PYPTO_SIM_ACLNN_PHASES(aclnn_name, aclnn_name##_aten)
// The types of the parameters follow ATen's name.
#define ATEN(name, aten_name, ...) ATEN_DEFINE(aclnn##name, aten_name, false, __VA_ARGS__)
#define ATEN_INPLACE(name, aten_name, ...) \
  ATEN_DEFINE(aclnnInplace##name, aten_name, true, Out __VA_OPT__(, ) __VA_ARGS__)
// Out of place and in place. The arguments are the types of the parameters after `self`.
#define ATEN_BOTH(name, aten_name, ...)                         \
  ATEN(name, aten_name, Tensor __VA_OPT__(, ) __VA_ARGS__, Out) \
  ATEN_INPLACE(name, aten_name __VA_OPT__(, ) __VA_ARGS__)
// Both, for a tensor and for a scalar.
#define ATEN_OTHER(name, aten_name)                    \
  ATEN_BOTH(name##Tensor, aten_name ".Tensor", Tensor) \
  ATEN_BOTH(name##Scalar, aten_name ".Scalar", Scalar)

// clang-format off
ATEN(Abs, "abs", Tensor, Out)
ATEN(BitwiseNot, "bitwise_not", Tensor, Out)
ATEN(Gelu, "gelu", Tensor, Out)
ATEN(IsFinite, "isfinite", Tensor, Out)
ATEN(IsNegInf, "isneginf", Tensor, Out)
ATEN(IsPosInf, "isposinf", Tensor, Out)
ATEN(Max, "max", Tensor, Out)
ATEN(Min, "min", Tensor, Out)
ATEN(Sign, "sign", Tensor, Out)
ATEN(Silu, "silu", Tensor, Out)
ATEN(Softplus, "softplus", Tensor, Scalar, Scalar, Out)

ATEN_BOTH(Ceil, "ceil")
ATEN_BOTH(Cos, "cos")
ATEN_BOTH(Erf, "erf")
ATEN_BOTH(Exp, "exp")
ATEN_BOTH(Exp2, "exp2")
ATEN_BOTH(Floor, "floor")
ATEN_BOTH(Log, "log")
ATEN_BOTH(Log10, "log10")
ATEN_BOTH(Log2, "log2")
ATEN_BOTH(LogicalNot, "logical_not")
ATEN_BOTH(Neg, "neg")
ATEN_BOTH(Reciprocal, "reciprocal")
ATEN_BOTH(Relu, "relu")
ATEN_BOTH(Round, "round")
ATEN_BOTH(Rsqrt, "rsqrt")
ATEN_BOTH(Sigmoid, "sigmoid")
ATEN_BOTH(Sin, "sin")
ATEN_BOTH(Sqrt, "sqrt")
ATEN_BOTH(Tanh, "tanh")
ATEN_BOTH(Trunc, "trunc")

ATEN_BOTH(Add, "add.Tensor", Tensor, Scalar)
ATEN_BOTH(Adds, "add.Scalar", Scalar, Scalar)
ATEN_BOTH(Sub, "sub.Tensor", Tensor, Scalar)
ATEN_BOTH(Subs, "sub.Scalar", Scalar, Scalar)
ATEN_BOTH(Mul, "mul.Tensor", Tensor)
ATEN_BOTH(Muls, "mul.Scalar", Scalar)
ATEN_BOTH(Div, "div.Tensor", Tensor)
ATEN_BOTH(Divs, "div.Scalar", Scalar)
ATEN_BOTH(FloorDivide, "floor_divide", Tensor)
ATEN_BOTH(FloorDivides, "floor_divide.Scalar", Scalar)
ATEN_OTHER(Fmod, "fmod")
ATEN_BOTH(RemainderTensorTensor, "remainder.Tensor", Tensor)
ATEN_BOTH(RemainderTensorScalar, "remainder.Scalar", Scalar)
ATEN_BOTH(PowTensorTensor, "pow.Tensor_Tensor", Tensor)
ATEN_BOTH(PowTensorScalar, "pow.Tensor_Scalar", Scalar)
ATEN(PowScalarTensor, "pow.Scalar", Scalar, Tensor, Out)
ATEN(Maximum, "maximum", Tensor, Tensor, Out)
ATEN(Minimum, "minimum", Tensor, Tensor, Out)
ATEN(Clamp, "clamp", Tensor, MaybeScalar, MaybeScalar, Out)
ATEN(ClampMin, "clamp_min", Tensor, Scalar, Out)
ATEN_BOTH(ClampMax, "clamp_max", Scalar)
ATEN_BOTH(LogicalAnd, "logical_and", Tensor)
ATEN_BOTH(LogicalOr, "logical_or", Tensor)
ATEN(LogicalXor, "logical_xor", Tensor, Tensor, Out)
ATEN_OTHER(BitwiseAnd, "bitwise_and")
ATEN_OTHER(BitwiseOr, "bitwise_or")
ATEN_OTHER(BitwiseXor, "bitwise_xor")
ATEN_OTHER(Eq, "eq")
ATEN_OTHER(Ne, "ne")
ATEN_OTHER(Lt, "lt")
ATEN_OTHER(Le, "le")
ATEN_OTHER(Gt, "gt")
ATEN_OTHER(Ge, "ge")
ATEN(Addcmul, "addcmul", Tensor, Tensor, Tensor, Scalar, Out)
ATEN(Addcdiv, "addcdiv", Tensor, Tensor, Tensor, Scalar, Out)
ATEN(IsClose, "isclose", Tensor, Tensor, double, double, bool, Out)

ATEN(Cumsum, "cumsum", Tensor, int64_t, Dtype, Out)
ATEN(MaxDim, "max.dim", Tensor, int64_t, bool, Out, Out)
ATEN(MinDim, "min.dim", Tensor, int64_t, bool, Out, Out)
ATEN(Prod, "prod", Tensor, Dtype, Out)
ATEN(Sort, "sort.stable", Tensor, bool, int64_t, bool, Out, Out)
ATEN(Topk, "topk", Tensor, int64_t, int64_t, bool, bool, Out, Out)

ATEN(Addmm, "addmm", Tensor, Tensor, Tensor, Scalar, Scalar, Out, CubeMath)
ATEN(Baddbmm, "baddbmm", Tensor, Tensor, Tensor, Scalar, Scalar, Out, CubeMath)
ATEN(BatchMatMul, "bmm", Tensor, Tensor, Out, CubeMath)
ATEN(Matmul, "matmul", Tensor, Tensor, Out, CubeMath)
ATEN(Mm, "mm", Tensor, Tensor, Out, CubeMath)
ATEN(SigmoidBackward, "sigmoid_backward", Tensor, Tensor, Out)
ATEN(TanhBackward, "tanh_backward", Tensor, Tensor, Out)
ATEN(ThresholdBackward, "threshold_backward", Tensor, Tensor, Scalar, Out)

ATEN(Cat, "cat", Tensors, int64_t, Out)
ATEN(ConstantPadNd, "constant_pad_nd", Tensor, Dims, Scalar, Out)
ATEN(Embedding, "embedding", Tensor, Tensor, Out)
ATEN(Eye, "eye.m", int64_t, int64_t, Out)
ATEN(Flip, "flip", Tensor, Dims, Out)
ATEN(IndexCopy, "index_copy", Tensor, int64_t, Tensor, Tensor, Out)
ATEN(IndexSelect, "index_select", Tensor, int64_t, Tensor, Out)
ATEN(Repeat, "repeat", Tensor, Dims, Out)
ATEN(Roll, "roll", Tensor, Dims, Dims, Out)
ATEN(ScatterAdd, "scatter_add", Tensor, int64_t, Tensor, Tensor, Out)
ATEN(Stack, "stack", Tensors, int64_t, Out)
ATEN(Tril, "tril", Tensor, int64_t, Out)
ATEN(Triu, "triu", Tensor, int64_t, Out)

ATEN_INPLACE(Copy, "copy_", Tensor)
ATEN_INPLACE(FillScalar, "fill_.Scalar", Scalar)
ATEN_INPLACE(FillTensor, "copy_", Tensor)
ATEN_INPLACE(IndexCopy, "index_copy_", int64_t, Tensor, Tensor)
ATEN_INPLACE(MaskedFillScalar, "masked_fill_.Scalar", Tensor, Scalar)
ATEN_INPLACE(One, "ones_like")
ATEN_INPLACE(Zero, "zero_")
// clang-format on

namespace {

at::Generator generator(int64_t seed, int64_t offset) {
  return at::detail::createCPUGenerator(static_cast<uint64_t>(seed * 1000003 + offset));
}

// A captured graph reads seed and offset from device memory, so each replay differs.
at::Generator generator(const at::Tensor& seed, const at::Tensor& first, int64_t offset) {
  return generator(seed.item<int64_t>(), first.item<int64_t>() + offset);
}

// CANN takes an empty list, and no list, as all dimensions.
Dims all_of(const at::Tensor& self, const std::optional<Dims>& dims) {
  if (dims && !dims->empty()) return *dims;
  Dims result(static_cast<size_t>(self.dim()));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

// torch_npu passes an empty tensor for a dimension that is not indexed.
c10::List<std::optional<at::Tensor>> indices_of(const std::vector<at::Tensor>& tensors) {
  c10::List<std::optional<at::Tensor>> result;
  for (const auto& tensor : tensors) {
    const bool given = tensor.numel() != 0 || tensor.dim() != 1;
    result.push_back(given ? std::optional<at::Tensor>(tensor) : std::nullopt);
  }
  return result;
}

// CANN's mode: 0 true division, 1 truncates, 2 floors.
std::optional<c10::string_view> rounding(int64_t mode) {
  if (mode == 0) return std::nullopt;
  return mode == 1 ? "trunc" : "floor";
}

}  // namespace

#define KERNEL(aclnn_name, ...) CUSTOM_PYPTO_SIM_ACLNN_KERNEL(aclnn_name, nullptr, __VA_ARGS__)
// An op with one output, by an expression of the inputs, which follow.
#define OP(name, expression, ...) \
  KERNEL(aclnn##name, __VA_ARGS__, Out out) { out.copy_(expression); }
#define REDUCTION(name, expression, ...) \
  OP(name, expression, Tensor self, std::optional<Dims> dims, bool keep, ##__VA_ARGS__)
#define INPLACE(name, statement, ...) \
  KERNEL(aclnnInplace##name, Tensor& self, __VA_ARGS__) { self.statement; }

// clang-format off
OP(Arange, at::arange(start, end, step, out.options()), Scalar start, Scalar end, Scalar step)
OP(ArgMax, self.argmax(dim, keep).reshape(out.sizes()), Tensor self, int64_t dim, bool keep)
OP(ArgMin, self.argmin(dim, keep).reshape(out.sizes()), Tensor self, int64_t dim, bool keep)
OP(Cast, self, Tensor self, Dtype)
OP(DivMod, self.div(other, rounding(mode)), Tensor self, Tensor other, int64_t mode)
OP(DivMods, self.div(other, rounding(mode)), Tensor self, Scalar other, int64_t mode)
OP(Gather, self.gather(dim, index.to(at::kLong)), Tensor self, int64_t dim, Tensor index)
OP(Index, self.index(indices_of(indices)), Tensor self, Tensors indices)
OP(LinalgVectorNorm, at::linalg_vector_norm(self, order, all_of(self, dims), keep, dtype),
   Tensor self, Scalar order, std::optional<Dims> dims, bool keep, Dtype dtype)
OP(Linspace, at::linspace(start, end, steps, out.options()),
   Scalar start, Scalar end, int64_t steps)
OP(LogSoftmax, self.log_softmax(dim, out.scalar_type()), Tensor self, int64_t dim)
OP(Randperm, at::randperm(n, generator(seed, offset)), int64_t n, int64_t seed, int64_t offset)
OP(Softmax, self.softmax(dim, out.scalar_type()), Tensor self, int64_t dim)
OP(SoftmaxBackward, at::_softmax_backward_data(grad, output, dim, output.scalar_type()),
   Tensor grad, Tensor output, int64_t dim)
OP(SWhere, self.where(condition.to(at::kBool), other), Tensor condition, Tensor self, Tensor other)

REDUCTION(All, self.dim() == 0 ? self.all() : self.to(at::kBool).all(all_of(self, dims), keep))
REDUCTION(Any, self.dim() == 0 ? self.any() : self.to(at::kBool).any(all_of(self, dims), keep))
REDUCTION(Amax, self.amax(all_of(self, dims), keep))
REDUCTION(Amin, self.amin(all_of(self, dims), keep))
REDUCTION(Mean, self.mean(all_of(self, dims), keep, dtype), Dtype dtype)
REDUCTION(ReduceSum, self.sum(all_of(self, dims), keep, dtype), Dtype dtype)

INPLACE(MaskedFillTensor, masked_fill_(mask, value.reshape({})), Tensor mask, Tensor value)
INPLACE(Normal, normal_(mean, deviation, generator(seed, offset)),
        float mean, float deviation, int64_t seed, int64_t offset)
INPLACE(NormalTensor, normal_(mean, deviation, generator(seed, first, offset)),
        float mean, float deviation, Tensor seed, Tensor first, int64_t offset)
INPLACE(Random, random_(from, to, generator(seed, offset)),
        int64_t from, int64_t to, int64_t seed, int64_t offset)
INPLACE(RandomTensor, random_(from, to, generator(seed, first, offset)),
        int64_t from, int64_t to, Tensor seed, Tensor first, int64_t offset)
// The last argument is the reduction: torch_npu always passes none.
INPLACE(Scatter, scatter_(dim, index, from), int64_t dim, Tensor index, Tensor from, int64_t)
INPLACE(ScatterValue, scatter_(dim, index, value), int64_t dim, Tensor index, Scalar value, int64_t)
INPLACE(Uniform, uniform_(from, to, generator(seed, offset)),
        double from, double to, int64_t seed, int64_t offset)
INPLACE(UniformTensor, uniform_(from, to, generator(seed, first, offset)),
        double from, double to, Tensor seed, Tensor first, int64_t offset)
// clang-format on

KERNEL(aclnnEqual, Tensor self, Tensor other, Out out) { out.fill_(self.equal(other)); }
KERNEL(aclnnIndexPutImpl, Tensor& self, Tensors indices, Tensor values, bool accumulate, bool) {
  self.index_put_(indices_of(indices), values, accumulate);
}
KERNEL(aclnnMaskedSelect, Tensor self, Tensor mask, DynamicOutput out) {
  out.set(self.masked_select(mask.to(at::kBool)));
}
KERNEL(aclnnNonzero, Tensor self, DynamicOutput out) { out.set(self.nonzero()); }
// One row for each dimension.
KERNEL(aclnnNonzeroV2, Tensor self, DynamicOutput out) { out.set(self.nonzero().t()); }
KERNEL(aclnnMatmulWeightNz, Tensor self, const aclTensor& mat2, Out out, int8_t) {
  out.copy_(self.mm(from_fractal_nz(mat2)));
}
KERNEL(aclnnRmsNorm, Tensor self, Tensor weight, double epsilon, Out out, Out scale) {
  const auto wide = self.to(at::kFloat);
  Dims dims;
  for (int64_t i = -weight.dim(); i < 0; ++i) dims.push_back(i);
  const auto inverse = wide.square().mean(dims, true).add(epsilon).rsqrt();
  out.copy_(wide.mul(inverse).mul(weight.to(at::kFloat)));
  scale.copy_(inverse);
}
KERNEL(aclnnLayerNorm, Tensor self, Dims shape, std::optional<Tensor> weight,
       std::optional<Tensor> bias, double epsilon, Out out, std::optional<Tensor> mean,
       std::optional<Tensor> scale) {
  const auto [result, center, inverse] = at::native_layer_norm(self, shape, weight, bias, epsilon);
  out.copy_(result);
  if (mean) mean->copy_(center);
  if (scale) scale->copy_(inverse);
}
