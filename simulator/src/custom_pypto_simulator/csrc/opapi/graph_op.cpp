// The graph engine's own operators: see graph_op.h.
#include "graph_op.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "attributes.h"
#include "custom_pypto_simulator/dtype.h"
#include "custom_pypto_simulator/need.h"
#include "custom_pypto_simulator/runtime.h"
#include "graph_kernel.h"

namespace custom_pypto_simulator {

namespace {

using Inputs = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(Attributes&, const Inputs&)>;

std::vector<int64_t> integers(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.to(at::kLong).contiguous().flatten();
  return {wide.data_ptr<int64_t>(), wide.data_ptr<int64_t>() + wide.numel()};
}

at::Scalar value(Attributes& attributes) {
  const Attribute& given = attributes.get("value");
  return given.type == Attribute::Type::real ? at::Scalar(given.real) : at::Scalar(given.integer);
}

at::Tensor matmul(Attributes& attributes, const Inputs& in, const char* first, const char* second) {
  attributes.only("offset_x", int64_t{0});
  const at::Tensor left = attributes.integer(first, 0) != 0 ? in[0].mT() : in[0];
  const at::Tensor right = attributes.integer(second, 0) != 0 ? in[1].mT() : in[1];
  const at::Tensor product = at::matmul(left, right);
  return in.size() > 2 && in[2].defined() ? product + in[2] : product;
}

at::ScalarType dtype(Attributes& attributes, const char* name, int64_t otherwise) {
  return scalar_type(static_cast<aclDataType>(attributes.integer(name, otherwise)));
}

at::Tensor reduce(Attributes& attributes, const Inputs& in,
                  at::Tensor (*function)(const at::Tensor&, at::OptionalIntArrayRef, bool,
                                         std::optional<at::ScalarType>)) {
  const auto axes = integers(in.at(1));
  const bool keep = attributes.integer("keep_dims", 0) != 0;
  constexpr int64_t kUnsaid = -1;
  const int64_t unchanged = attributes.integer("noop_with_empty_axes", kUnsaid);
  if (axes.empty() && in[0].dim() != 0) {
    need(unchanged != kUnsaid, "a reduction over no axes must say noop_with_empty_axes");
    if (unchanged != 0) return in[0];
  }
  return function(in[0], axes, keep, std::nullopt);
}

// The first `count` inputs; the node must have as many.
Inputs parts(Attributes& attributes, const Inputs& in, size_t count) {
  attributes.only("N", static_cast<int64_t>(count));
  return {in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count)};
}

at::Tensor unsqueeze(const at::Tensor& tensor, std::vector<int64_t> axes) {
  const auto rank = tensor.dim() + static_cast<int64_t>(axes.size());
  for (auto& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  at::Tensor result = tensor;
  for (const int64_t axis : axes) result = result.unsqueeze(axis);
  return result;
}

at::Tensor squeeze(Attributes& attributes, const Inputs& in) {
  const auto axes = attributes.integers("axis", {});
  return axes.empty() ? in.at(0).squeeze() : in.at(0).squeeze(axes);
}

at::Tensor reshape(Attributes& attributes, const Inputs& in) {
  attributes.only("axis", int64_t{0});
  attributes.only("num_axes", int64_t{-1});
  return in.at(0).reshape(integers(in.at(1)));
}

at::Tensor softmax(Attributes& attributes, const Inputs& in) {
  const auto axes = attributes.integers("axes", {-1});
  need(axes.size() == 1, "SoftmaxV2 over several axes is not emulated");
  const bool widen = attributes.integer("half_to_float", 0) != 0;
  return at::softmax(in.at(0), axes[0], widen ? std::optional(at::kFloat) : std::nullopt);
}

at::Tensor gather(Attributes& attributes, const Inputs& in) {
  attributes.only("batch_dims", int64_t{0});
  attributes.only("is_preprocessed", int64_t{0});
  const at::Tensor& from = in.at(0);
  int64_t axis = integers(in.at(2)).at(0);
  if (axis < 0) axis += from.dim();
  at::Tensor index = in.at(1);
  if (attributes.integer("negative_index_support", 0) != 0) {
    index = at::where(index < 0, index + from.size(axis), index);
  }
  std::vector<int64_t> shape = from.sizes().vec();
  const auto at_axis = shape.erase(shape.begin() + axis);
  shape.insert(at_axis, index.sizes().begin(), index.sizes().end());
  return from.index_select(axis, index.flatten()).reshape(shape);
}

// Later writes to the tensor are not visible in the copy. It is on the device, because a kernel may
// write into it.
at::Tensor copy_on_device(const at::Tensor& tensor) {
  at::Tensor copy = empty_on_device(tensor.sizes().vec(), tensor.scalar_type());
  copy.copy_(tensor);
  return copy;
}

// Slices by begin, end and step; the masks remove an end.
at::Tensor strided_slice(Attributes& attributes, const Inputs& in) {
  for (const char* mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    attributes.only(mask, int64_t{0});
  }
  const int64_t from_first = attributes.integer("begin_mask", 0);
  const int64_t to_last = attributes.integer("end_mask", 0);
  const auto begin = integers(in.at(1));
  const auto end = integers(in.at(2));
  const auto step = integers(in.at(3));
  at::Tensor result = in.at(0);
  for (size_t i = 0; i < begin.size(); ++i) {
    const auto dim = static_cast<int64_t>(i);
    const int64_t first = (from_first >> i & 1) != 0 ? 0 : begin[i];
    const int64_t last = (to_last >> i & 1) != 0 ? result.size(dim) : end[i];
    result = result.slice(dim, first, last, step[i]);
  }
  return result;
}

// y, mean, rstd.
Inputs layer_norm(Attributes& attributes, const Inputs& in) {
  const auto [y, mean, rstd] = at::native_layer_norm(in.at(0), integers(in.at(1)), in.at(2),
                                                     in.at(3), attributes.real("epsilon", 1e-5));
  return {y, mean, rstd};
}

// y, rstd.
Inputs rms_norm(Attributes& attributes, const Inputs& in) {
  const double epsilon = attributes.real("epsilon", 1e-6);
  std::vector<int64_t> dims;
  for (int64_t dim = -in.at(1).dim(); dim != 0; ++dim) dims.push_back(dim);
  const at::Tensor squares = in.at(0).to(at::kFloat).square().mean(dims, /*keepdim=*/true);
  return {at::rms_norm(in[0], in[1].sizes(), in[1], epsilon), (squares + epsilon).rsqrt()};
}

// Requires the factors of the plain exp and log.
void check_plain(Attributes& attributes) {
  attributes.only("base", -1.0);
  attributes.only("scale", 1.0);
  attributes.only("shift", 0.0);
}

// The sorted values and their indices.
Inputs sort(Attributes& attributes, const Inputs& in) {
  const bool stable = attributes.integer("stable", 0) != 0;
  const bool descending = attributes.integer("descending", 0) != 0;
  const auto [values, indices] =
      at::sort(in.at(0), stable, attributes.integer("axis", -1), descending);
  return {values, indices.to(at::kInt)};
}

Inputs identity_n(Attributes&, const Inputs& in) {
  Inputs copies;
  for (const auto& each : in) copies.push_back(copy_on_device(each));
  return copies;
}

// In place, like the operator: in[0] is its output.
at::Tensor scatter_nd_update(Attributes& attributes, const Inputs& in) {
  attributes.only("use_locking", int64_t{0});
  c10::List<std::optional<at::Tensor>> indices;
  for (const auto& each : in.at(1).to(at::kLong).unbind(-1)) {
    indices.push_back(std::optional(each));
  }
  at::Tensor written = in.at(0);
  written.index_put_(indices, in.at(2));
  return written;
}

#define CUSTOM_PYPTO_SIM_OP(expression)                        \
  [](Attributes& attributes, const Inputs& in) -> at::Tensor { \
    (void)attributes;                                          \
    return expression;                                         \
  }
#define CUSTOM_PYPTO_SIM_UNARY_OP(name, function) {name, CUSTOM_PYPTO_SIM_OP(function(in.at(0)))}
#define CUSTOM_PYPTO_SIM_BINARY_OP(name, function) \
  {name, CUSTOM_PYPTO_SIM_OP(function(in.at(0), in.at(1)))}

// One operator under two names.
const Function kMatMul =
    CUSTOM_PYPTO_SIM_OP(matmul(attributes, in, "transpose_x1", "transpose_x2"));
const Function kBatchMatMul = CUSTOM_PYPTO_SIM_OP(matmul(attributes, in, "adj_x1", "adj_x2"));
const Function kSelect = CUSTOM_PYPTO_SIM_OP(at::where(in.at(0), in.at(1), in.at(2)));

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table = {
      CUSTOM_PYPTO_SIM_UNARY_OP("Abs", at::abs),
      CUSTOM_PYPTO_SIM_UNARY_OP("Cos", at::cos),
      CUSTOM_PYPTO_SIM_UNARY_OP("LogicalNot", at::logical_not),
      CUSTOM_PYPTO_SIM_UNARY_OP("Neg", at::neg),
      CUSTOM_PYPTO_SIM_UNARY_OP("Reciprocal", at::reciprocal),
      CUSTOM_PYPTO_SIM_UNARY_OP("Relu", at::relu),
      CUSTOM_PYPTO_SIM_UNARY_OP("Rint", at::round),
      CUSTOM_PYPTO_SIM_UNARY_OP("Rsqrt", at::rsqrt),
      CUSTOM_PYPTO_SIM_UNARY_OP("Sigmoid", at::sigmoid),
      CUSTOM_PYPTO_SIM_UNARY_OP("Sin", at::sin),
      CUSTOM_PYPTO_SIM_UNARY_OP("Sqrt", at::sqrt),
      CUSTOM_PYPTO_SIM_UNARY_OP("Square", at::square),
      CUSTOM_PYPTO_SIM_UNARY_OP("Tanh", at::tanh),
      CUSTOM_PYPTO_SIM_UNARY_OP("Identity", copy_on_device),
      CUSTOM_PYPTO_SIM_UNARY_OP("TensorMove", copy_on_device),
      CUSTOM_PYPTO_SIM_BINARY_OP("Add", at::add),
      CUSTOM_PYPTO_SIM_BINARY_OP("AddV2", at::add),
      CUSTOM_PYPTO_SIM_BINARY_OP("Equal", at::eq),
      CUSTOM_PYPTO_SIM_BINARY_OP("FloorDiv", at::floor_divide),
      CUSTOM_PYPTO_SIM_BINARY_OP("FloorMod", at::remainder),
      CUSTOM_PYPTO_SIM_BINARY_OP("Greater", at::gt),
      CUSTOM_PYPTO_SIM_BINARY_OP("GreaterEqual", at::ge),
      CUSTOM_PYPTO_SIM_BINARY_OP("Less", at::lt),
      CUSTOM_PYPTO_SIM_BINARY_OP("LessEqual", at::le),
      CUSTOM_PYPTO_SIM_BINARY_OP("LogicalAnd", at::logical_and),
      CUSTOM_PYPTO_SIM_BINARY_OP("LogicalOr", at::logical_or),
      CUSTOM_PYPTO_SIM_BINARY_OP("Maximum", at::maximum),
      CUSTOM_PYPTO_SIM_BINARY_OP("Minimum", at::minimum),
      CUSTOM_PYPTO_SIM_BINARY_OP("Mul", at::mul),
      CUSTOM_PYPTO_SIM_BINARY_OP("NotEqual", at::ne),
      CUSTOM_PYPTO_SIM_BINARY_OP("Pow", at::pow),
      CUSTOM_PYPTO_SIM_BINARY_OP("RealDiv", at::div),
      CUSTOM_PYPTO_SIM_BINARY_OP("Sub", at::sub),
      {"Adds", CUSTOM_PYPTO_SIM_OP(at::add(in.at(0), value(attributes)))},
      {"Muls", CUSTOM_PYPTO_SIM_OP(at::mul(in.at(0), value(attributes)))},
      {"Exp", CUSTOM_PYPTO_SIM_OP((check_plain(attributes), at::exp(in.at(0))))},
      {"Log", CUSTOM_PYPTO_SIM_OP((check_plain(attributes), at::log(in.at(0))))},
      {"Swish", CUSTOM_PYPTO_SIM_OP((attributes.only("scale", 1.0), at::silu(in.at(0))))},
      {"StridedSlice", strided_slice},
      {"ScatterNdUpdate", scatter_nd_update},
      {"SoftmaxV2", softmax},
      {"GatherV2", gather},
      {"MatMul", kMatMul},
      {"MatMulV2", kMatMul},
      {"BatchMatMul", kBatchMatMul},
      {"BatchMatMulV2", kBatchMatMul},
      {"Select", kSelect},
      {"SelectV2", kSelect},
      {"Reshape", reshape},
      {"Squeeze", squeeze},
      {"Unsqueeze", CUSTOM_PYPTO_SIM_OP(unsqueeze(in.at(0), attributes.integers("axes", {})))},
      {"Cast", CUSTOM_PYPTO_SIM_OP(in.at(0).to(dtype(attributes, "dst_type", ACL_DT_UNDEFINED)))},
      {"Fill", CUSTOM_PYPTO_SIM_OP(in.at(1).expand(integers(in.at(0))).clone())},
      {"BroadcastTo", CUSTOM_PYPTO_SIM_OP(in.at(0).expand(integers(in.at(1))))},
      {"Transpose", CUSTOM_PYPTO_SIM_OP(in.at(0).permute(integers(in.at(1))))},
      {"Shape",
       CUSTOM_PYPTO_SIM_OP(
           at::tensor(in.at(0).sizes(), at::kLong).to(dtype(attributes, "dtype", ACL_INT32)))},
      {"ReduceMax", CUSTOM_PYPTO_SIM_OP(at::amax(in.at(0), integers(in.at(1)),
                                                 attributes.integer("keep_dims", 0) != 0))},
      {"ReduceSum", CUSTOM_PYPTO_SIM_OP(reduce(attributes, in, at::sum))},
      {"ReduceMean", CUSTOM_PYPTO_SIM_OP(reduce(attributes, in, at::mean))},
      {"Pack", CUSTOM_PYPTO_SIM_OP(
                   at::stack(parts(attributes, in, in.size()), attributes.integer("axis", 0)))},
      {"ConcatV2", CUSTOM_PYPTO_SIM_OP(
                       at::cat(parts(attributes, in, in.size() - 1), integers(in.back()).at(0)))},
  };
  return table;
}

// The operators of several outputs.
const std::map<std::string, Inputs (*)(Attributes&, const Inputs&)>& several() {
  static const std::map<std::string, Inputs (*)(Attributes&, const Inputs&)> table = {
      {"IdentityN", identity_n},
      {"LayerNormV4", layer_norm},
      {"RmsNorm", rms_norm},
      {"Sort", sort},
  };
  return table;
}

}  // namespace

bool run_builtin(const Node& node, const std::vector<at::Tensor>& inputs,
                 std::vector<at::Tensor>& outputs) {
  Attributes attributes(node);
  if (const auto found = functions().find(node.type); found != functions().end()) {
    outputs = {found->second(attributes, inputs)};
  } else if (const auto of_several = several().find(node.type); of_several != several().end()) {
    outputs = of_several->second(attributes, inputs);
  } else {
    return false;
  }
  attributes.refuse_unread();
  return true;
}

}  // namespace custom_pypto_simulator

CUSTOM_PYPTO_SIM_EXPORT bool custom_pypto_sim_is_builtin(const char* type) {
  using namespace custom_pypto_simulator;
  return functions().count(type) != 0 || several().count(type) != 0;
}
