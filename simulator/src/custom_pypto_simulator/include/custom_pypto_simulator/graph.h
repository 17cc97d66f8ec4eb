// A graph as torchair serialised it, and the functions that run it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "custom_pypto_simulator/boxed.h"

namespace custom_pypto_simulator {

struct Attribute {
  enum class Type { none, string, integer, real, boolean, list, tensor };
  Type type = Type::none;
  std::string string;
  int64_t integer = 0;
  double real = 0;
  std::vector<int64_t> integers;
  std::vector<float> reals;
  std::vector<bool> booleans;
  // For a tensor, whose bytes are in `string`.
  aclDataType dtype = ACL_DT_UNDEFINED;
  std::vector<int64_t> shape;
};

struct Description {
  std::string name;
  aclDataType dtype = ACL_DT_UNDEFINED;
  std::vector<int64_t> shape;
  std::string
      meta;  // torchair's note of the symbolic shape: "Tensor(..., shape=torch.Size([s0, 3])"
};

struct Node {
  std::string name;
  std::string type;
  std::vector<std::string> inputs;  // "producer:output"; "" when an optional one is absent
  std::map<std::string, Attribute> attributes;
  std::vector<Description> input_descriptions;
  std::vector<Description> output_descriptions;
};

struct Model {
  std::vector<Node> nodes;  // in an order in which they can run
};

// An input or output of the graph.
struct Border {
  aclDataType dtype = ACL_DT_UNDEFINED;
  std::vector<int64_t> shape;  // of the storage
  int format = 2;              // of the storage, an aclFormat
  void* data = nullptr;
  size_t bytes = 0;
};

// A parameter of a simulated kernel, as the graph engine's op has it.
struct Parameter {
  ParameterKind kind;
  std::string name;  // without the suffix "Ref" of arguments that are written in place
};

}  // namespace custom_pypto_simulator

extern "C" {

// The simulated kernel behind an op type of the graph engine ("AddCustom" -> aclnnAddCustom), found
// as torch_npu finds it for eager calls; null when there is none. Without `is_stock`, only one that
// is not part of the simulator: it replaces the engine's own operator. Throws std::runtime_error
// when its library was built for another simulator.
const custom_pypto_simulator::Op* custom_pypto_sim_find_op(const char* type, bool is_stock);

// The same; throws std::invalid_argument when there is none.
const custom_pypto_simulator::Op* custom_pypto_sim_require_op(const char* type);

// Whether the engine computes an op type by itself. In libopapi.so.
bool custom_pypto_sim_is_builtin(const char* type);

// The parameters of a kernel, parsed.
void custom_pypto_sim_parameters(const custom_pypto_simulator::Op* op,
                                 std::vector<custom_pypto_simulator::Parameter>* parameters);

// Computes `model`. An output whose data is null is allocated on the device and belongs to the
// caller. In libopapi.so, because it computes with ATen.
int custom_pypto_sim_run_graph(const custom_pypto_simulator::Model* model,
                               const std::vector<custom_pypto_simulator::Border>* inputs,
                               std::vector<custom_pypto_simulator::Border>* outputs);
}
