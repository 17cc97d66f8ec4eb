// The part of the graph engine's session that torchair uses, and the engine behind it.
//
// The session is declared here because the torch_npu wheel's ge/ge_api.h is older than the torchair
// inside the same wheel. Only mangled names and argument layouts have to match.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

// What these headers declare is what torchair imports.
#pragma GCC visibility push(default)
#include "graph/ascend_string.h"
#include "graph/gnode.h"
#include "graph/graph.h"
#include "graph/operator.h"
#include "graph/operator_factory.h"
#include "graph/tensor.h"
#pragma GCC visibility pop

#define CUSTOM_PYPTO_SIM_PUBLIC __attribute__((visibility("default")))

namespace ge {

using Status = uint32_t;
using Options = std::map<AscendString, AscendString>;

class Allocator;

struct CUSTOM_PYPTO_SIM_PUBLIC CompiledGraphSummary {
  bool IsStatic() const;
  Status GetConstMemorySize(size_t& bytes) const;
  Status GetFeatureMemorySize(size_t& bytes) const;
  Status GetFixedFeatureMemorySize(size_t& bytes) const;
  Status GetFeatureMemoryBaseRefreshable(bool& refreshable) const;
  Status GetOutputShapes(std::vector<Shape>& shapes) const;
  Status GetOutputDtypes(std::vector<DataType>& dtypes) const;

  bool is_static = false;
  std::vector<Shape> shapes;
  std::vector<DataType> dtypes;
};

class CUSTOM_PYPTO_SIM_PUBLIC Session {
 public:
  explicit Session(const Options& options);
  ~Session();

  Status AddGraph(uint32_t id, const Graph& graph, const Options& options);
  Status CompileGraph(uint32_t id);
  std::shared_ptr<CompiledGraphSummary> GetCompiledGraphSummary(uint32_t id);
  Status RemoveGraph(uint32_t id);
  Status RunGraph(uint32_t id, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);
  Status RunGraphWithStreamAsync(uint32_t id, void* stream, const std::vector<Tensor>& inputs,
                                 std::vector<Tensor>& outputs);
  Status RegisterExternalAllocator(const void* stream, std::shared_ptr<Allocator> allocator) const;
  Status SetGraphConstMemoryBase(uint32_t id, const void* memory, size_t bytes);
  Status UpdateGraphFeatureMemoryBase(uint32_t id, const void* memory, size_t bytes);
  Status SetGraphFixedFeatureMemoryBase(uint32_t id, const void* memory, size_t bytes);
  Status UpdateGraphRefreshableFeatureMemoryBase(uint32_t id, const void* memory, size_t bytes);
};

CUSTOM_PYPTO_SIM_PUBLIC Status GEInitialize(const Options& options);
CUSTOM_PYPTO_SIM_PUBLIC Status GEFinalize();
CUSTOM_PYPTO_SIM_PUBLIC AscendString GEGetWarningMsgV2();

}  // namespace ge

namespace custom_pypto_simulator {

// An input or output of a graph, as in graph_engine.py.
struct Border {
  void* data = nullptr;
  size_t bytes = 0;
  int32_t dtype = 0;   // an aclDataType
  int32_t format = 2;  // of the storage, an aclFormat
  size_t rank = 0;
  int64_t sizes[16] = {};  // of the storage
};

// The names and kinds of an op's inputs, outputs and attributes.
struct Definition {
  using Names = std::vector<std::pair<ge::AscendString, ge::AscendString>>;
  Names* lists[3];
};

// The engine, in graph_calls.py. Each returns -1, with the recent error set, when it fails.
struct Engine {
  int (*add)(uint64_t graph, const void* bytes, size_t size, ge::CompiledGraphSummary* summary);
  int (*run)(uint64_t graph, Border* inputs, size_t input_count, Border* outputs,
             size_t output_count);
  void (*remove)(uint64_t graph);
  int (*parameters)(const char* type, Definition* definition);
};

}  // namespace custom_pypto_simulator

// The last error of the graph engine, for GEGetErrorMsg.
const char* custom_pypto_sim_engine_error();
