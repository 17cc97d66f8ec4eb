// The graph engine's session: hands graphs to the engine, and puts their runs on streams.
#include <cstdio>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "acl/acl.h"
#include "custom_pypto_simulator/runtime.h"
#include "engine.h"

namespace sim = custom_pypto_simulator;

namespace {

constexpr ge::Status kSuccess = 0;
constexpr ge::Status kFailed = 0xFFFFFFFF;
// The memory that a graph requests: torchair allocates it, the simulator does not use it.
constexpr size_t kMemoryBytes = 512;

sim::Engine engine{};

// A graph of the engine, removed once no session and no run needs it.
struct Model {
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() { engine.remove(number); }

  uint64_t number = 0;
  ge::CompiledGraphSummary summary;
};

std::mutex mutex;
std::string last_error;

// Never destroyed: Python ends before static objects do.
auto& models() {
  static auto* by_id = new std::map<uint32_t, std::shared_ptr<const Model>>;
  return *by_id;
}

ge::Status fail(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex);
  last_error = text;
  std::fprintf(stderr, "%s\n", text.c_str());
  custom_pypto_sim_error(ACL_ERROR_GE_FAILURE, text.c_str());
  return kFailed;
}

ge::Status fail_with_recent() {
  const char* text = aclGetRecentErrMsg();
  return fail(text == nullptr ? "custom_pypto_simulator: a graph failed" : text);
}

template <class Value>
ge::Status give(const Value& value, Value& result) {
  result = value;
  return kSuccess;
}

std::shared_ptr<const Model> find(uint32_t id) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = models().find(id);
  return found == models().end() ? nullptr : found->second;
}

ge::Status fail_without(uint32_t id) {
  return fail("custom_pypto_simulator: there is no graph " + std::to_string(id));
}

sim::Border border_of(const ge::Tensor& tensor) {
  sim::Border border;
  border.dtype = static_cast<int32_t>(tensor.GetDataType());  // the numbers are the same
  border.format = static_cast<int32_t>(tensor.GetFormat());
  border.data = const_cast<uint8_t*>(tensor.GetData());
  border.bytes = tensor.GetSize();
  border.rank = tensor.GetShapeDimNum();
  for (size_t i = 0; i < border.rank; ++i) border.sizes[i] = tensor.GetShapeDim(i);
  return border;
}

// A run, with all that it needs, for the stream.
struct Run {
  std::shared_ptr<const Model> model;
  std::vector<sim::Border> inputs;
  std::vector<sim::Border> outputs;

  int operator()() {
    const int code =
        engine.run(model->number, inputs.data(), inputs.size(), outputs.data(), outputs.size());
    return code == 0 ? ACL_SUCCESS : ACL_ERROR_GE_FAILURE;
  }
};

void take_outputs(const Run& run, std::vector<ge::Tensor>& outputs) {
  outputs.resize(run.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const sim::Border& border = run.outputs[i];
    if (outputs[i].GetData() == nullptr) {
      const auto release = [](uint8_t* data) { aclrtFree(data); };
      outputs[i].SetData(static_cast<uint8_t*>(border.data), border.bytes, release);
      outputs[i].SetPlacement(ge::kPlacementDevice);
      outputs[i].SetDataType(static_cast<ge::DataType>(border.dtype));
    }
    outputs[i].SetShapeDimNum(border.rank);
    for (size_t k = 0; k < border.rank; ++k) outputs[i].SetShapeDim(k, border.sizes[k]);
  }
}

}  // namespace

const char* custom_pypto_sim_engine_error() { return last_error.c_str(); }

CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_connect(decltype(sim::Engine::add) add,
                                                      decltype(sim::Engine::run) run,
                                                      decltype(sim::Engine::remove) remove,
                                                      decltype(sim::Engine::parameters) find) {
  engine = {add, run, remove, find};
}

CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_add_output(ge::CompiledGraphSummary* summary,
                                                         int dtype, const int64_t* sizes,
                                                         size_t rank) {
  summary->shapes.emplace_back(std::vector<int64_t>(sizes, sizes + rank));
  summary->dtypes.push_back(static_cast<ge::DataType>(dtype));
}

CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_add_parameter(sim::Definition* definition, int list,
                                                            const char* name, const char* kind) {
  definition->lists[list]->emplace_back(name, kind);
}

// The IR of an op: of a simulated kernel, its parameters. Throws where the library of the kernel is
// for another simulator.
extern "C" CUSTOM_PYPTO_SIM_PUBLIC ge::Status GetRegisteredIrDef(
    const char* type, sim::Definition::Names& inputs, sim::Definition::Names& outputs,
    sim::Definition::Names& attributes) {
  sim::Definition definition{{&inputs, &outputs, &attributes}};
  const int found = engine.parameters(type, &definition);
  if (found < 0) throw std::runtime_error(aclGetRecentErrMsg());
  return found == 1 ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

namespace ge {

// Keeps a graph as torchair serialised it.
class GraphImpl {
 public:
  std::string bytes;
};

// A friend of Graph that reads its bytes.
class GraphUtils {
 public:
  static const std::string& bytes(const Graph& graph) { return graph.impl_->bytes; }
};

Graph::Graph(const char_t*) : impl_(std::make_shared<GraphImpl>()) {}

graphStatus Graph::LoadFromSerializedModelArray(const void* bytes, size_t size) {
  impl_ = std::make_shared<GraphImpl>();
  impl_->bytes.assign(static_cast<const char*>(bytes), size);
  return GRAPH_SUCCESS;
}

graphStatus Graph::CopyFrom(const Graph& other) {
  impl_ = std::make_shared<GraphImpl>(*other.impl_);
  return GRAPH_SUCCESS;
}

graphStatus Graph::SaveToFile(const char_t* path) const {
  std::ofstream file(path, std::ios::binary);
  file << impl_->bytes;
  return file ? GRAPH_SUCCESS : GRAPH_FAILED;
}

// torchair calls these for graphs that it tunes or checks; there are no node objects here.
std::vector<GNode> Graph::GetAllNodes() const { return {}; }
graphStatus GNode::GetType(AscendString&) const { return GRAPH_FAILED; }

// Built-in operators have no IR here, so torchair does not check calls against it.
class OperatorImpl {};
bool OperatorFactory::IsExistOp(const char_t* const) { return false; }
Operator OperatorFactory::CreateOperator(const char_t* const, const char_t* const) {
  return Operator();
}
graphStatus Operator::UpdateInputDesc(const char_t*, const TensorDesc&) { return GRAPH_FAILED; }
graphStatus Operator::GetAllIrAttrNamesAndTypes(std::map<AscendString, AscendString>&) const {
  return GRAPH_FAILED;
}

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
  static std::atomic<uint64_t> last{0};
  const auto model = std::make_shared<Model>();
  model->number = ++last;
  const std::string& bytes = GraphUtils::bytes(graph);
  const int added = engine.add(model->number, bytes.data(), bytes.size(), &model->summary);
  if (added < 0) return fail_with_recent();
  model->summary.is_static = added == 1;
  std::shared_ptr<const Model> other = model;  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(mutex);
  models()[id].swap(other);
  return kSuccess;
}

Status Session::CompileGraph(uint32_t id) { return find(id) ? kSuccess : fail_without(id); }

std::shared_ptr<CompiledGraphSummary> Session::GetCompiledGraphSummary(uint32_t id) {
  const auto model = find(id);
  return model ? std::make_shared<CompiledGraphSummary>(model->summary) : nullptr;
}

Status Session::RemoveGraph(uint32_t id) {
  const auto held = find(id);  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(mutex);
  models().erase(id);
  return kSuccess;
}

Status Session::RunGraph(uint32_t id, const std::vector<Tensor>& inputs,
                         std::vector<Tensor>& outputs) {
  return RunGraphWithStreamAsync(id, nullptr, inputs, outputs);
}

Status Session::RunGraphWithStreamAsync(uint32_t id, void* stream,
                                        const std::vector<Tensor>& inputs,
                                        std::vector<Tensor>& outputs) {
  const auto run = std::make_shared<Run>();
  run->model = find(id);
  if (!run->model) return fail_without(id);
  for (const auto& tensor : inputs) run->inputs.push_back(border_of(tensor));
  bool allocated = !outputs.empty();
  for (const auto& tensor : outputs) {
    run->outputs.push_back(border_of(tensor));
    allocated = allocated && tensor.GetData() != nullptr;
  }
  run->outputs.resize(run->model->summary.shapes.size());
  if (sim::enqueue(stream, "a graph", [run] { return (*run)(); }) != ACL_SUCCESS) {
    return fail_with_recent();
  }
  // Where the engine allocates the outputs, torchair reads their shapes as soon as this returns.
  if (allocated && run->model->summary.is_static) return kSuccess;
  if (aclrtSynchronizeStream(stream) != ACL_SUCCESS) return fail_with_recent();
  take_outputs(*run, outputs);
  return kSuccess;
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
