// The graph engine's session: compiles, runs and removes graphs.
#include <dlfcn.h>

#include <cstdio>
#include <mutex>
#include <utility>

#include "acl/acl.h"
#include "custom_pypto_simulator/graph.h"
#include "custom_pypto_simulator/runtime.h"
#include "engine.h"
#include "model.h"

namespace sim = custom_pypto_simulator;

namespace {

constexpr ge::Status kSuccess = 0;
constexpr ge::Status kFailed = 0xFFFFFFFF;
// The memory that a graph requests: torchair allocates it, the simulator does not use it.
constexpr size_t kMemoryBytes = 512;

std::mutex mutex;
std::map<uint32_t, std::shared_ptr<const sim::Model>> models;
std::string last_error;

ge::Status fail(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex);
  last_error = "custom_pypto_simulator: " + text;
  std::fprintf(stderr, "%s\n", last_error.c_str());
  custom_pypto_sim_error(ACL_ERROR_GE_FAILURE, text.c_str());
  return kFailed;
}

template <class Value>
ge::Status give(const Value& value, Value& result) {
  result = value;
  return kSuccess;
}

std::shared_ptr<const sim::Model> find(uint32_t id) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = models.find(id);
  return found == models.end() ? nullptr : found->second;
}

// The inputs of NetOutput.
const std::vector<sim::Description>& outputs_of(const sim::Model& model) {
  static const std::vector<sim::Description> none;
  for (const auto& node : model.nodes) {
    if (node.type == "NetOutput") return node.input_descriptions;
  }
  return none;
}

bool is_static(const sim::Model& model) {
  for (const auto& node : model.nodes) {
    if (node.type != "Data") continue;
    for (const auto& description : node.output_descriptions) {
      for (const int64_t size : description.shape) {
        if (size < 0) return false;
      }
    }
  }
  return true;
}

// Throws when an operator of the graph has no kernel. As GE, before anything runs: what fails on a
// stream reaches Python as the number of an error.
void check_operators(const sim::Model& model) {
  const auto is_builtin = CUSTOM_PYPTO_SIM_OF_OPAPI(custom_pypto_sim_is_builtin);
  for (const auto& node : model.nodes) {
    const bool is_of_graph =
        node.type == "Data" || node.type == "Const" || node.type == "NetOutput";
    if (is_of_graph || is_builtin == nullptr || is_builtin(node.type.c_str())) continue;
    custom_pypto_sim_require_op(node.type.c_str());
  }
}

sim::Border border_of(const ge::Tensor& tensor) {
  sim::Border border;
  border.dtype = static_cast<aclDataType>(tensor.GetDataType());  // the numbers are the same
  for (size_t i = 0; i < tensor.GetShapeDimNum(); ++i) {
    border.shape.push_back(tensor.GetShapeDim(i));
  }
  border.format = static_cast<int>(tensor.GetFormat());
  border.data = const_cast<uint8_t*>(tensor.GetData());
  border.bytes = tensor.GetSize();
  return border;
}

using RunGraph = decltype(&custom_pypto_sim_run_graph);

// A run, with copies of everything it needs, to be executed on the stream.
struct Run {
  RunGraph run;
  std::shared_ptr<const sim::Model> model;
  std::vector<sim::Border> inputs;
  std::vector<sim::Border> outputs;

  int operator()() { return run(model.get(), &inputs, &outputs); }
};

ge::Status run_now(Run& run, void* stream, std::vector<ge::Tensor>& outputs) {
  if (aclrtSynchronizeStream(stream) != ACL_SUCCESS || run() != ACL_SUCCESS) {
    const char* text = aclGetRecentErrMsg();
    return fail(text == nullptr ? "a graph failed" : text);
  }
  outputs.resize(run.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const sim::Border& border = run.outputs[i];
    if (outputs[i].GetData() == nullptr) {
      const auto release = [](uint8_t* data) { aclrtFree(data); };
      outputs[i].SetData(static_cast<uint8_t*>(border.data), border.bytes, release);
      outputs[i].SetPlacement(ge::kPlacementDevice);
      outputs[i].SetDataType(static_cast<ge::DataType>(border.dtype));
    }
    outputs[i].SetShapeDimNum(border.shape.size());
    for (size_t k = 0; k < border.shape.size(); ++k) outputs[i].SetShapeDim(k, border.shape[k]);
  }
  return kSuccess;
}

}  // namespace

const char* custom_pypto_sim_engine_error() { return last_error.c_str(); }

void* custom_pypto_sim_opapi_symbol(const char* name) {
  void* library = dlopen("libopapi.so", RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : dlsym(library, name);
}

namespace ge {

bool CompiledGraphSummary::IsStatic() const { return is_static; }
Status CompiledGraphSummary::GetConstMemorySize(size_t& bytes) const {
  return give(kMemoryBytes, bytes);
}
Status CompiledGraphSummary::GetFeatureMemorySize(size_t& bytes) const {
  return give(kMemoryBytes, bytes);
}
Status CompiledGraphSummary::GetFixedFeatureMemorySize(size_t& bytes) const {
  return give(kMemoryBytes, bytes);
}
Status CompiledGraphSummary::GetFeatureMemoryBaseRefreshable(bool& refreshable) const {
  return give(false, refreshable);
}
Status CompiledGraphSummary::GetOutputShapes(std::vector<Shape>& result) const {
  return give(shapes, result);
}
Status CompiledGraphSummary::GetOutputDtypes(std::vector<DataType>& result) const {
  return give(dtypes, result);
}

Status GEInitialize(const Options&) { return kSuccess; }
Status GEFinalize() { return kSuccess; }
AscendString GEGetWarningMsgV2() { return AscendString(""); }

Session::Session(const Options&) {}
Session::~Session() = default;

Status Session::AddGraph(uint32_t id, const Graph& graph, const Options&) {
  try {
    auto model = std::make_shared<const sim::Model>(sim::parse_model(bytes_of(graph)));
    check_operators(*model);
    const std::lock_guard<std::mutex> lock(mutex);
    models[id] = std::move(model);
    return kSuccess;
  } catch (const std::exception& exception) {
    return fail(exception.what());
  }
}

Status Session::CompileGraph(uint32_t id) {
  return find(id) ? kSuccess : fail("there is no graph " + std::to_string(id));
}

std::shared_ptr<CompiledGraphSummary> Session::GetCompiledGraphSummary(uint32_t id) {
  const auto model = find(id);
  if (!model) return nullptr;
  auto summary = std::make_shared<CompiledGraphSummary>();
  summary->is_static = ::is_static(*model);
  for (const auto& output : outputs_of(*model)) {
    summary->shapes.emplace_back(output.shape);
    summary->dtypes.push_back(static_cast<DataType>(output.dtype));
  }
  return summary;
}

Status Session::RemoveGraph(uint32_t id) {
  const std::lock_guard<std::mutex> lock(mutex);
  models.erase(id);
  return kSuccess;
}

Status Session::RunGraph(uint32_t id, const std::vector<Tensor>& inputs,
                         std::vector<Tensor>& outputs) {
  return RunGraphWithStreamAsync(id, nullptr, inputs, outputs);
}

Status Session::RunGraphWithStreamAsync(uint32_t id, void* stream,
                                        const std::vector<Tensor>& inputs,
                                        std::vector<Tensor>& outputs) {
  Run run;
  run.run = CUSTOM_PYPTO_SIM_OF_OPAPI(custom_pypto_sim_run_graph);
  if (run.run == nullptr) return fail("the simulated libopapi.so is not loaded");
  run.model = find(id);
  if (!run.model) return fail("there is no graph " + std::to_string(id));
  for (const auto& tensor : inputs) run.inputs.push_back(border_of(tensor));
  bool allocated = !outputs.empty();
  for (const auto& tensor : outputs) {
    run.outputs.push_back(border_of(tensor));
    allocated = allocated && tensor.GetData() != nullptr;
  }
  run.outputs.resize(outputs_of(*run.model).size());
  // Where the engine allocates the outputs, torchair reads their shapes as soon as this returns.
  if (!allocated || !is_static(*run.model)) return run_now(run, stream, outputs);
  return sim::enqueue(stream, "a graph", std::move(run)) == ACL_SUCCESS
             ? kSuccess
             : fail("the graph cannot be put on its stream");
}

// Memory that torchair manages for the engine; unused, since the simulator allocates its own.
Status Session::RegisterExternalAllocator(const void*, std::shared_ptr<Allocator>) const {
  return kSuccess;
}
Status Session::SetGraphConstMemoryBase(uint32_t, const void*, size_t) { return kSuccess; }
Status Session::UpdateGraphFeatureMemoryBase(uint32_t, const void*, size_t) { return kSuccess; }
Status Session::SetGraphFixedFeatureMemoryBase(uint32_t, const void*, size_t) { return kSuccess; }
Status Session::UpdateGraphRefreshableFeatureMemoryBase(uint32_t, const void*, size_t) {
  return kSuccess;
}

}  // namespace ge
