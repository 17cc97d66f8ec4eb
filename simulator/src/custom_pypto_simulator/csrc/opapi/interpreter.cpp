// Runs a graph node by node, in the order of node_order.h. The values between nodes live until the
// end of the run.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <map>
#include <string>

#include "attributes.h"
#include "custom_pypto_simulator/dtype.h"
#include "custom_pypto_simulator/fractal_nz.h"
#include "custom_pypto_simulator/graph.h"
#include "custom_pypto_simulator/need.h"
#include "custom_pypto_simulator/runtime.h"
#include "graph_kernel.h"
#include "graph_op.h"
#include "node_order.h"
#include "symbol.h"

namespace custom_pypto_simulator {
namespace {

at::Tensor view(const Border& border) {
  return at::from_blob(border.data, border.shape,
                       at::TensorOptions().dtype(scalar_type(border.dtype)));
}

// An argument as the nodes see it: the engine converts a matrix in FRACTAL_NZ to plain order.
at::Tensor plain(const Border& border) {
  const at::Tensor memory = view(border);
  return border.format == ACL_FORMAT_FRACTAL_NZ ? on_device(from_tiles(memory)) : memory;
}

at::Tensor constant(const Node& node) {
  Attributes attributes(node);
  const Attribute& value = attributes.get("value");
  attributes.refuse_unread();
  const auto dtype = scalar_type(value.dtype);
  auto* bytes = const_cast<char*>(value.string.data());
  return at::from_blob(bytes, value.shape, at::TensorOptions().dtype(dtype)).clone();
}

class Run {
 public:
  Run(const Model& model, const std::vector<Border>& inputs, std::vector<Border>& outputs)
      : model_(model), inputs_(inputs), outputs_(outputs) {}

  void operator()() {
    // Arguments first, used or not: the sizes of other nodes may be computed from theirs.
    for (const auto& node : model_.nodes) {
      if (node.type == "Data") values_[node.name + ":0"] = data(node);
    }
    for (const Node* node : schedule(model_)) {
      if (node->type == "NetOutput") {
        finish(*node);
      } else {
        const auto results = compute(*node);
        for (size_t i = 0; i < results.size(); ++i) {
          values_[node->name + ":" + std::to_string(i)] = results[i];
        }
      }
    }
  }

 private:
  std::vector<at::Tensor> inputs_of(const Node& node) const {
    std::vector<at::Tensor> result;
    for (const auto& name : node.inputs) {
      if (is_control(name)) continue;
      if (name.empty()) {
        result.emplace_back();
        continue;
      }
      const auto found = values_.find(name);
      need(found != values_.end(), node.name, " uses ", name, ", which nothing has computed");
      result.push_back(found->second);
    }
    return result;
  }

  at::Tensor data(const Node& node) {
    const auto index = static_cast<size_t>(Attributes(node).get("index").integer);
    const at::Tensor value = plain(inputs_.at(index));
    const std::string& meta = node.output_descriptions.at(0).meta;
    if (meta.find("torch.Size(") != std::string::npos) {
      symbols_.bind(meta, value.sizes().vec());
    } else if (value.numel() == 1 && at::isIntegralType(value.scalar_type(), false)) {
      symbols_.bind_value(meta, value.item<int64_t>());
    }
    return value;
  }

  std::vector<at::Tensor> compute(const Node& node) {
    if (node.type == "Const") return {constant(node)};
    const auto inputs = inputs_of(node);
    std::vector<at::Tensor> results;
    const Op* op = custom_pypto_sim_find_op(node.type.c_str(), false);
    if (op == nullptr && run_builtin(node, inputs, results)) {
      for (auto& result : results) result = on_device(result);
      return results;
    }
    if (op == nullptr) op = custom_pypto_sim_require_op(node.type.c_str());
    return run_kernel(*op, node, inputs, shapes_of(node));
  }

  std::vector<std::vector<int64_t>> shapes_of(const Node& node) const {
    std::vector<std::vector<int64_t>> shapes;
    for (const auto& output : node.output_descriptions) {
      // An output written in place has its input's shape.
      const bool noted = output.meta.find("torch.Size(") != std::string::npos;
      shapes.push_back(noted ? symbols_.shape(output.meta) : output.shape);
    }
    return shapes;
  }

  void finish(const Node& node) {
    const auto results = inputs_of(node);
    need(results.size() == outputs_.size(), "the graph has ", results.size(),
         " outputs, room was given for ", outputs_.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const auto dtype = node.input_descriptions.at(i).dtype;
      write(results[i].to(scalar_type(dtype)).contiguous(), dtype, outputs_[i]);
    }
  }

  static void write(const at::Tensor& result, aclDataType dtype, Border& output) {
    const size_t bytes = result.nbytes();
    if (output.data == nullptr) {
      output.bytes = bytes == 0 ? 1 : bytes;
      if (aclrtMalloc(&output.data, output.bytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) {
        throw std::runtime_error("no device memory for an output of the graph");
      }
    } else if (output.bytes < bytes) {
      // GE, too, compares with the size that torchair passes, not with the shape.
      const bool is_outdated = view(output).nbytes() >= bytes;
      refuse("an output needs ", bytes, " bytes, ", output.bytes, " were given",
             is_outdated ? ": torchair gives the size of the tensor that an earlier call had at "
                           "this address. Keep that tensor, or compile the function again"
                         : "");
    }
    output.dtype = dtype;
    output.shape = result.sizes().vec();
    if (bytes != 0) std::memcpy(output.data, result.data_ptr(), bytes);
  }

  const Model& model_;
  const std::vector<Border>& inputs_;
  std::vector<Border>& outputs_;
  std::map<std::string, at::Tensor> values_;
  Symbols symbols_;
};

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT int custom_pypto_sim_run_graph(const sim::Model* model,
                                                       const std::vector<sim::Border>* inputs,
                                                       std::vector<sim::Border>* outputs) {
  try {
    const c10::InferenceMode no_autograd;
    sim::Run(*model, *inputs, *outputs)();
    return ACL_SUCCESS;
  } catch (const std::exception& exception) {
    return sim::fail(ACL_ERROR_GE_FAILURE, "graph engine: ", exception.what());
  }
}
