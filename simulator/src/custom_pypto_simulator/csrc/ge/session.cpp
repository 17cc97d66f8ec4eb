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
};

int run_later(void* state) {
  auto& run = *static_cast<Run*>(state);
  return run.run(run.model.get(), &run.inputs, &run.outputs);
}

ge::Status run_now(Run& run, void* stream, std::vector<ge::Tensor>& outputs) {
  if (aclrtSynchronizeStream(stream) != ACL_SUCCESS ||
      run.run(run.model.get(), &run.inputs, &run.outputs) != ACL_SUCCESS) {
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

CompiledGraphSummary::CompiledGraphSummary(bool is_static, std::vector<Shape> shapes,
                                           std::vector<DataType> dtypes)
    : is_static_(is_static), shapes_(std::move(shapes)), dtypes_(std::move(dtypes)) {}
bool CompiledGraphSummary::IsStatic() const { return is_static_; }
Status CompiledGraphSummary::GetConstMemorySize(size_t& bytes) const {
  bytes = kMemoryBytes;
  return kSuccess;
}
Status CompiledGraphSummary::GetFeatureMemorySize(size_t& bytes) const {
  bytes = kMemoryBytes;
  return kSuccess;
}
Status CompiledGraphSummary::GetFixedFeatureMemorySize(size_t& bytes) const {
  bytes = kMemoryBytes;
  return kSuccess;
}
Status CompiledGraphSummary::GetFeatureMemoryBaseRefreshable(bool& refreshable) const {
  refreshable = false;
  return kSuccess;
}
Status CompiledGraphSummary::GetOutputShapes(std::vector<Shape>& shapes) const {
  shapes = shapes_;
  return kSuccess;
}
Status CompiledGraphSummary::GetOutputDtypes(std::vector<DataType>& dtypes) const {
  dtypes = dtypes_;
  return kSuccess;
}

Status GEInitialize(const Options&) { return kSuccess; }
Status GEFinalize() { return kSuccess; }
AscendString GEGetWarningMsgV2() { return AscendString(""); }

Session::Session(const Options&) {}
Session::~Session() = default;

Status Session::AddGraph(uint32_t id, const Graph& graph, const Options&) {
  try {
    auto model = std::make_shared<const sim::Model>(sim::parse_model(bytes_of(graph)));
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
  std::vector<Shape> shapes;
  std::vector<DataType> dtypes;
  for (const auto& output : outputs_of(*model)) {
    shapes.emplace_back(output.shape);
    dtypes.push_back(static_cast<DataType>(output.dtype));
  }
  return std::make_shared<CompiledGraphSummary>(is_static(*model), shapes, dtypes);
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
  auto run = std::make_unique<Run>();
  run->run = CUSTOM_PYPTO_SIM_OF_OPAPI(custom_pypto_sim_run_graph);
  if (run->run == nullptr) return fail("the simulated libopapi.so is not loaded");
  run->model = find(id);
  if (!run->model) return fail("there is no graph " + std::to_string(id));
  for (const auto& tensor : inputs) run->inputs.push_back(border_of(tensor));
  bool allocated = !outputs.empty();
  for (const auto& tensor : outputs) {
    run->outputs.push_back(border_of(tensor));
    allocated = allocated && tensor.GetData() != nullptr;
  }
  run->outputs.resize(outputs_of(*run->model).size());
  // Where the engine allocates the outputs, torchair reads their shapes as soon as this returns.
  if (!allocated || !is_static(*run->model)) return run_now(*run, stream, outputs);
  const int code = custom_pypto_sim_enqueue(stream, "a graph", run_later, run.release(),
                                            [](void* state) { delete static_cast<Run*>(state); });
  return code == ACL_SUCCESS ? kSuccess : fail("the graph cannot be put on its stream");
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
