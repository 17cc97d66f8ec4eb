#include "graph_op.h"

#include <ATen/ATen.h>

#include <functional>

#include "custom_pypto_simulator/dtype.h"
#include "custom_pypto_simulator/runtime.h"
#include "graph_kernel.h"

namespace custom_pypto_simulator {

const Attribute& attribute(const Node& node, const std::string& name) {
  const auto found = node.attributes.find(name);
  if (found != node.attributes.end()) return found->second;
  throw std::invalid_argument(node.type + " has no attribute '" + name + "'");
}

namespace {

using Inputs = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Node&, const Inputs&)>;

int64_t integer(const Node& node, const char* name, int64_t otherwise) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? otherwise : found->second.integer;
}

std::vector<int64_t> integers(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.to(at::kLong).contiguous().flatten();
  return {wide.data_ptr<int64_t>(), wide.data_ptr<int64_t>() + wide.numel()};
}

at::Scalar value(const Node& node) {
  const Attribute& given = attribute(node, "value");
  return given.type == Attribute::Type::real ? at::Scalar(given.real) : at::Scalar(given.integer);
}

at::Tensor matmul(const Node& node, const Inputs& in, const char* first, const char* second) {
  const at::Tensor left = integer(node, first, 0) != 0 ? in[0].mT() : in[0];
  const at::Tensor right = integer(node, second, 0) != 0 ? in[1].mT() : in[1];
  const at::Tensor product = at::matmul(left, right);
  return in.size() > 2 && in[2].defined() ? product + in[2] : product;
}

at::ScalarType dtype(const Node& node, const char* name) {
  return scalar_type(static_cast<aclDataType>(attribute(node, name).integer));
}

at::Tensor reduce(const Node& node, const Inputs& in,
                  at::Tensor (*function)(const at::Tensor&, at::OptionalIntArrayRef, bool,
                                         std::optional<at::ScalarType>)) {
  return function(in[0], integers(in[1]), integer(node, "keep_dims", 0) != 0, std::nullopt);
}

at::Tensor join(const Inputs& in, size_t count, int64_t dim, bool stack) {
  const Inputs parts(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count));
  return stack ? at::stack(parts, dim) : at::cat(parts, dim);
}

// On the device, because a kernel may write into it.
at::Tensor moved(const at::Tensor& tensor) {
  at::Tensor copy = empty_on_device(tensor.sizes().vec(), tensor.scalar_type());
  copy.copy_(tensor);
  return copy;
}

// Ranges by begin, end and step, whose ends the masks lift.
at::Tensor strided_slice(const Node& node, const Inputs& in) {
  for (const char* mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    if (integer(node, mask, 0) != 0) {
      throw std::invalid_argument(std::string("StridedSlice with ") + mask + " is not emulated");
    }
  }
  const auto begin = integers(in.at(1));
  const auto end = integers(in.at(2));
  const auto step = integers(in.at(3));
  at::Tensor result = in.at(0);
  for (size_t i = 0; i < begin.size(); ++i) {
    const bool from_first = (integer(node, "begin_mask", 0) >> i & 1) != 0;
    const bool to_last = (integer(node, "end_mask", 0) >> i & 1) != 0;
    const auto dim = static_cast<int64_t>(i);
    result =
        result.slice(dim, from_first ? 0 : begin[i], to_last ? result.size(dim) : end[i], step[i]);
  }
  return result;
}

at::Tensor layer_norm(const Node& node, const Inputs& in) {
  return at::layer_norm(in.at(0), integers(in.at(1)), in.at(2), in.at(3),
                        attribute(node, "epsilon").real);
}

at::Tensor rms_norm(const Node& node, const Inputs& in) {
  return at::rms_norm(in.at(0), in.at(1).sizes(), in.at(1), attribute(node, "epsilon").real);
}

// The sorted values alone: where they came from is the second output.
at::Tensor sort(const Node& node, const Inputs& in) {
  return std::get<0>(
      at::sort(in.at(0), integer(node, "axis", -1), integer(node, "descending", 0) != 0));
}

// In place, like the operator: in[0] is its output.
at::Tensor scatter_nd_update(const Node&, const Inputs& in) {
  c10::List<std::optional<at::Tensor>> indices;
  for (const auto& each : in.at(1).to(at::kLong).unbind(-1)) {
    indices.push_back(std::optional(each));
  }
  at::Tensor written = in.at(0);
  written.index_put_(indices, in.at(2));
  return written;
}

#define CUSTOM_PYPTO_SIM_UNARY_OP(name, function) \
  {name, [](const Node&, const Inputs& in) { return function(in.at(0)); }}
#define CUSTOM_PYPTO_SIM_BINARY_OP(name, function) \
  {name, [](const Node&, const Inputs& in) { return function(in.at(0), in.at(1)); }}

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table = {
      CUSTOM_PYPTO_SIM_UNARY_OP("Abs", at::abs),
      CUSTOM_PYPTO_SIM_UNARY_OP("Cos", at::cos),
      CUSTOM_PYPTO_SIM_UNARY_OP("Exp", at::exp),
      CUSTOM_PYPTO_SIM_UNARY_OP("Log", at::log),
      CUSTOM_PYPTO_SIM_UNARY_OP("LogicalNot", at::logical_not),
      CUSTOM_PYPTO_SIM_UNARY_OP("Neg", at::neg),
      CUSTOM_PYPTO_SIM_UNARY_OP("Reciprocal", at::reciprocal),
      CUSTOM_PYPTO_SIM_UNARY_OP("Relu", at::relu),
      CUSTOM_PYPTO_SIM_UNARY_OP("Rsqrt", at::rsqrt),
      CUSTOM_PYPTO_SIM_UNARY_OP("Sigmoid", at::sigmoid),
      CUSTOM_PYPTO_SIM_UNARY_OP("Sin", at::sin),
      CUSTOM_PYPTO_SIM_UNARY_OP("Sqrt", at::sqrt),
      CUSTOM_PYPTO_SIM_UNARY_OP("Square", at::square),
      CUSTOM_PYPTO_SIM_UNARY_OP("Swish", at::silu),
      CUSTOM_PYPTO_SIM_UNARY_OP("Tanh", at::tanh),
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
      {"Add", [](const Node&, const Inputs& in) { return at::add(in.at(0), in.at(1)); }},
      {"AddV2", [](const Node&, const Inputs& in) { return at::add(in.at(0), in.at(1)); }},
      {"Sub", [](const Node&, const Inputs& in) { return at::sub(in.at(0), in.at(1)); }},
      {"Adds", [](const Node& node, const Inputs& in) { return at::add(in.at(0), value(node)); }},
      {"Muls", [](const Node& node, const Inputs& in) { return at::mul(in.at(0), value(node)); }},
      {"Identity", [](const Node&, const Inputs& in) { return in.at(0); }},
      {"TensorMove", [](const Node&, const Inputs& in) { return moved(in.at(0)); }},
      {"StridedSlice", strided_slice},
      {"LayerNormV4", layer_norm},
      {"RmsNorm", rms_norm},
      {"ScatterNdUpdate", scatter_nd_update},
      {"Sort", sort},
      {"Cast",
       [](const Node& node, const Inputs& in) { return in.at(0).to(dtype(node, "dst_type")); }},
      {"Fill",
       [](const Node&, const Inputs& in) { return in.at(1).expand(integers(in.at(0))).clone(); }},
      {"BroadcastTo",
       [](const Node&, const Inputs& in) { return in.at(0).expand(integers(in.at(1))); }},
      {"Reshape",
       [](const Node&, const Inputs& in) { return in.at(0).reshape(integers(in.at(1))); }},
      {"Transpose",
       [](const Node&, const Inputs& in) { return in.at(0).permute(integers(in.at(1))); }},
      {"Select",
       [](const Node&, const Inputs& in) { return at::where(in.at(0), in.at(1), in.at(2)); }},
      {"SelectV2",
       [](const Node&, const Inputs& in) { return at::where(in.at(0), in.at(1), in.at(2)); }},
      {"Unsqueeze",
       [](const Node& node, const Inputs& in) {
         at::Tensor result = in.at(0);
         for (const int64_t axis : attribute(node, "axes").integers)
           result = result.unsqueeze(axis);
         return result;
       }},
      {"Squeeze",
       [](const Node& node, const Inputs& in) {
         const auto& axes = attribute(node, "axis").integers;
         return axes.empty() ? in.at(0).squeeze() : in.at(0).squeeze(axes);
       }},
      {"Shape",
       [](const Node& node, const Inputs& in) {
         return at::tensor(in.at(0).sizes(), at::kLong).to(dtype(node, "dtype"));
       }},
      {"MatMul", [](const Node& node,
                    const Inputs& in) { return matmul(node, in, "transpose_x1", "transpose_x2"); }},
      {"MatMulV2",
       [](const Node& node, const Inputs& in) {
         return matmul(node, in, "transpose_x1", "transpose_x2");
       }},
      {"BatchMatMul",
       [](const Node& node, const Inputs& in) { return matmul(node, in, "adj_x1", "adj_x2"); }},
      {"BatchMatMulV2",
       [](const Node& node, const Inputs& in) { return matmul(node, in, "adj_x1", "adj_x2"); }},
      {"SoftmaxV2",
       [](const Node& node, const Inputs& in) {
         return at::softmax(in.at(0), attribute(node, "axes").integers.at(0));
       }},
      {"ReduceSum", [](const Node& node, const Inputs& in) { return reduce(node, in, at::sum); }},
      {"ReduceMean", [](const Node& node, const Inputs& in) { return reduce(node, in, at::mean); }},
      {"Pack",
       [](const Node& node, const Inputs& in) {
         return join(in, in.size(), integer(node, "axis", 0), true);
       }},
      {"ConcatV2",
       [](const Node&, const Inputs& in) {
         return join(in, in.size() - 1, integers(in.back()).at(0), false);
       }},
      {"GatherV2",
       [](const Node&, const Inputs& in) {
         const int64_t axis = integers(in.at(2)).at(0);
         const at::Tensor& index = in.at(1);
         std::vector<int64_t> shape = in.at(0).sizes().vec();
         const auto at_axis = shape.erase(shape.begin() + axis);
         shape.insert(at_axis, index.sizes().begin(), index.sizes().end());
         return in.at(0).index_select(axis, index.flatten()).reshape(shape);
       }},
  };
  return table;
}

}  // namespace

bool run_builtin(const Node& node, const std::vector<at::Tensor>& inputs,
                 std::vector<at::Tensor>& outputs) {
  const auto found = functions().find(node.type);
  if (found == functions().end()) return false;
  outputs = {found->second(node, inputs)};
  return true;
}

}  // namespace custom_pypto_simulator

CUSTOM_PYPTO_SIM_EXPORT bool custom_pypto_sim_is_builtin(const char* type) {
  return custom_pypto_simulator::functions().count(type) != 0;
}
