// Runs simulated aclnn kernels for the graph engine: see graph_kernel.h.
#include "graph_kernel.h"

#include <ATen/ATen.h>

#include <functional>
#include <memory>

#include "attributes.h"
#include "custom_pypto_simulator/dtype.h"
#include "custom_pypto_simulator/need.h"
#include "custom_pypto_simulator/runtime.h"

extern "C" {
aclTensor* aclCreateTensor(const int64_t*, uint64_t, aclDataType, const int64_t*, int64_t,
                           aclFormat, const int64_t*, uint64_t, void*);
aclTensorList* aclCreateTensorList(const aclTensor* const*, uint64_t);
aclIntArray* aclCreateIntArray(const int64_t*, uint64_t);
aclFloatArray* aclCreateFloatArray(const float*, uint64_t);
aclBoolArray* aclCreateBoolArray(const bool*, uint64_t);
int aclDestroyTensor(const aclTensor*);
int aclDestroyTensorList(const aclTensorList*);
int aclDestroyIntArray(const aclIntArray*);
int aclDestroyFloatArray(const aclFloatArray*);
int aclDestroyBoolArray(const aclBoolArray*);
}

namespace custom_pypto_simulator {
namespace {

[[noreturn]] void fail_with_recent(const std::string& what) {
  const char* text = aclGetRecentErrMsg();
  throw std::runtime_error(text == nullptr ? what + " failed" : text);
}

// The aclnn objects of one call.
class Objects {
 public:
  const aclTensor* tensor(const at::Tensor& tensor) {
    return keep(create(tensor), aclDestroyTensor);
  }

  const aclTensorList* tensors(const std::vector<at::Tensor>& tensors) {
    std::vector<const aclTensor*> elements;
    for (const auto& each : tensors) elements.push_back(create(each));
    return keep(aclCreateTensorList(elements.data(), elements.size()), aclDestroyTensorList);
  }

  Value attribute(const std::string& type, const Attribute& given) {
    if (type == "VT_STRING") return {given.string.c_str()};
    if (type == "VT_LIST_INT") {
      const auto& values = given.integers;
      return {keep(aclCreateIntArray(values.data(), values.size()), aclDestroyIntArray)};
    }
    if (type == "VT_LIST_FLOAT") {
      const auto& values = given.reals;
      return {keep(aclCreateFloatArray(values.data(), values.size()), aclDestroyFloatArray)};
    }
    if (type == "VT_LIST_BOOL") {
      const size_t count = given.booleans.size();
      const std::unique_ptr<bool[]> copy(new bool[count]);
      std::copy(given.booleans.begin(), given.booleans.end(), copy.get());
      return {keep(aclCreateBoolArray(copy.get(), count), aclDestroyBoolArray)};
    }
    return {nullptr, given.integer, given.real};
  }

 private:
  static aclTensor* create(const at::Tensor& tensor) {
    const int64_t elements = tensor.numel();
    aclTensor* created = aclCreateTensor(tensor.sizes().data(), tensor.sizes().size(),
                                         acl_type(tensor.scalar_type()), tensor.strides().data(), 0,
                                         ACL_FORMAT_ND, &elements, 1, tensor.data_ptr());
    if (created == nullptr) fail_with_recent("aclCreateTensor");
    return created;
  }

  template <class Object>
  const Object* keep(Object* object, int (*destroy)(const Object*)) {
    if (object == nullptr) fail_with_recent("the creation of an aclnn object");
    kept_.emplace_back(object, [destroy](const Object* each) { destroy(each); });
    return object;
  }

  std::vector<std::shared_ptr<const void>> kept_;
};

class OwnStream {
 public:
  OwnStream() {
    if (aclrtCreateStream(&stream_) != ACL_SUCCESS) fail_with_recent("aclrtCreateStream");
  }
  ~OwnStream() { aclrtDestroyStream(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  aclrtStream get() const { return stream_; }

 private:
  aclrtStream stream_ = nullptr;
};

// The inputs of the node with this name: one, or for a dynamic input all that start with it.
std::vector<at::Tensor> inputs_named(const Node& node, const std::vector<at::Tensor>& inputs,
                                     const std::string& name, bool dynamic) {
  std::vector<at::Tensor> result;
  for (size_t i = 0; i < node.input_descriptions.size() && i < inputs.size(); ++i) {
    const std::string& given = node.input_descriptions[i].name;
    const bool numbered = dynamic && given.compare(0, name.size(), name) == 0 &&
                          given.find_first_not_of("0123456789", name.size()) == std::string::npos;
    if (given == name || numbered) result.push_back(inputs[i]);
  }
  return result;
}

// The type of the attribute for this parameter in a graph.
Attribute::Type type_of(const Parameter& parameter) {
  using Type = Attribute::Type;
  static const std::map<std::string, Type> types = {
      {"VT_INT", Type::integer},     {"VT_DATA_TYPE", Type::integer}, {"VT_FLOAT", Type::real},
      {"VT_BOOL", Type::boolean},    {"VT_STRING", Type::string},     {"VT_LIST_INT", Type::list},
      {"VT_LIST_FLOAT", Type::list}, {"VT_LIST_BOOL", Type::list},
  };
  const auto found = types.find(parameter.kind.attribute);
  if (found != types.end()) return found->second;
  refuse("the parameter '", parameter.name, "' has ", parameter.kind.attribute);
}

void launch(const Op& op, const std::vector<Value>& values) {
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  if (op.prepare(values.data(), &bytes, &executor) != ACL_SUCCESS) fail_with_recent(op.name);
  at::Tensor workspace;
  if (bytes != 0) workspace = empty_on_device({static_cast<int64_t>(bytes)}, at::kByte);
  void* data = bytes == 0 ? nullptr : workspace.data_ptr();
  const OwnStream stream;
  if (op.launch(data, bytes, executor, stream.get()) != ACL_SUCCESS ||
      aclrtSynchronizeStream(stream.get()) != ACL_SUCCESS) {
    fail_with_recent(op.name);
  }
}

}  // namespace

at::Tensor empty_on_device(const std::vector<int64_t>& shape, at::ScalarType dtype) {
  size_t bytes = c10::elementSize(dtype);
  for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
  void* data = nullptr;
  if (bytes != 0 && aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) {
    fail_with_recent("aclrtMalloc");
  }
  return at::from_blob(data, shape, [](void* each) { aclrtFree(each); }, dtype);
}

at::Tensor on_device(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const at::Tensor whole = tensor.contiguous();
  const size_t bytes = whole.nbytes();
  if (bytes == 0 || custom_pypto_sim_on_device(whole.data_ptr(), bytes)) return whole;
  at::Tensor copy = empty_on_device(whole.sizes().vec(), whole.scalar_type());
  copy.copy_(whole);
  return copy;
}

std::vector<at::Tensor> run_kernel(const Op& op, const Node& node,
                                   const std::vector<at::Tensor>& inputs,
                                   const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<Parameter> parameters;
  custom_pypto_sim_parameters(&op, &parameters);
  Attributes attributes(node);
  Objects objects;
  std::vector<Value> values;
  std::vector<at::Tensor> alive;
  std::map<std::string, at::Tensor> written;
  const auto fail = [&](const auto&... what) {
    refuse(node.type, what..., op.name, "(", op.parameters, ")");
  };
  size_t used = 0;
  // The input for a parameter; undefined for an optional one that is absent.
  const auto input = [&](const Parameter& parameter) {
    const auto given = inputs_named(node, inputs, parameter.name, false);
    if (!given.empty()) ++used;
    const at::Tensor found = given.empty() ? at::Tensor() : given[0];
    if (!found.defined() && parameter.kind.role != Role::optional_input) {
      fail(" needs the input '", parameter.name, "'; the kernel is ");
    }
    return found;
  };
  const auto add = [&](const at::Tensor& tensor) {
    alive.push_back(tensor);
    values.push_back({tensor.defined() ? objects.tensor(tensor) : nullptr});
  };
  for (const auto& parameter : parameters) {
    switch (parameter.kind.role) {
      case Role::input:
      case Role::optional_input:
        add(on_device(input(parameter)));
        break;
      case Role::dynamic_input: {
        std::vector<at::Tensor> list;
        for (const auto& each : inputs_named(node, inputs, parameter.name, true)) {
          ++used;
          list.push_back(on_device(each));
          alive.push_back(list.back());
        }
        values.push_back({objects.tensors(list)});
        break;
      }
      case Role::written_input:
        written[parameter.name] = input(parameter);
        add(written[parameter.name]);
        break;
      case Role::output: {
        const auto& outputs = node.output_descriptions;
        size_t index = 0;
        while (index < outputs.size() && outputs[index].name != parameter.name) ++index;
        if (index == outputs.size()) {
          fail(" has no output '", parameter.name, "'; the kernel is ");
        }
        written[parameter.name] =
            empty_on_device(shapes.at(index), scalar_type(outputs[index].dtype));
        add(written[parameter.name]);
        break;
      }
      case Role::attribute: {
        if (node.attributes.count(parameter.name) == 0) {
          fail(" needs the attribute '", parameter.name, "'; the kernel is ");
        }
        const Attribute& given = attributes.get(parameter.name);
        if (given.type != type_of(parameter)) {
          fail(" has an attribute '", parameter.name, "' that is not a ", parameter.kind.attribute,
               "; the kernel is ");
        }
        values.push_back(objects.attribute(parameter.kind.attribute, given));
        break;
      }
    }
  }
  if (used != node.input_descriptions.size()) {
    fail(" was given inputs that the kernel does not take: ");
  }
  attributes.refuse_unread();
  launch(op, values);
  std::vector<at::Tensor> outputs;
  for (const auto& description : node.output_descriptions) {
    const auto found = written.find(description.name);
    if (found == written.end()) {
      fail(" has an output '", description.name, "' that the kernel does not write: ");
    }
    outputs.push_back(found->second);
  }
  return outputs;
}

}  // namespace custom_pypto_simulator
