// Calls ops of plugins, as requests on standard input say, in a process for aarch64.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <cstdio>
#include <iostream>
#include <vector>

namespace {

using c10::IValue;

// A tensor is (its whole memory, dtype, sizes, strides, offset): pickles lack the newest dtypes.
IValue encode(const IValue& value) {
  if (value.isTensorList()) {
    c10::impl::GenericList list(c10::AnyType::get());
    for (const IValue& each : value.toListRef()) list.push_back(encode(each));
    return list;
  }
  if (!value.isTensor() || !value.toTensor().defined()) return value;
  const at::Tensor tensor = value.toTensor();
  const auto size = static_cast<int64_t>(tensor.storage().nbytes());
  const at::Tensor memory = at::empty({0}, at::kByte).set_(tensor.storage(), 0, {size}, {1});
  return c10::ivalue::Tuple::create(memory, std::string(c10::toString(tensor.scalar_type())),
                                    tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

at::ScalarType find_dtype(const std::string& name) {
  int dtype = 0;
  while (name != c10::toString(static_cast<at::ScalarType>(dtype))) ++dtype;
  return static_cast<at::ScalarType>(dtype);
}

std::vector<int64_t> integers(const IValue& list) {
  std::vector<int64_t> found;
  for (const IValue& each : list.toListRef()) found.push_back(each.toInt());
  return found;
}

IValue decode(const IValue& value) {
  if (value.isList() && !value.toListRef().empty() && value.toListRef()[0].isTuple()) {
    c10::List<at::Tensor> list;
    for (const IValue& each : value.toListRef()) list.push_back(decode(each).toTensor());
    return list;
  }
  if (!value.isTuple()) return value;
  const auto& parts = value.toTupleRef().elements();
  const auto dtype = find_dtype(parts[1].toStringRef());
  return at::empty({0}, dtype)
      .set_(parts[0].toTensor().storage(), parts[4].toInt(), integers(parts[2]),
            integers(parts[3]));
}

// [op, threads, arguments] -> (results, written arguments).
IValue call(const IValue& request) {
  const auto& parts = request.toTupleRef().elements();
  const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(parts[0].toStringRef().c_str(), "");
  at::set_num_threads(static_cast<int>(parts[1].toInt()));
  std::vector<IValue> stack;
  c10::impl::GenericList written(c10::AnyType::get());
  c10::impl::GenericList results(c10::AnyType::get());
  const auto& arguments = op.schema().arguments();
  for (const IValue& each : parts[2].toTupleRef().elements()) {
    const auto* alias = arguments[stack.size()].alias_info();
    stack.push_back(decode(each));
    if (alias != nullptr && alias->isWrite()) written.push_back(each);
  }
  op.callBoxed(stack);
  for (const IValue& each : stack) results.push_back(encode(each));
  return c10::ivalue::Tuple::create(results, written);
}

IValue answer(const std::vector<char>& request) {
  try {
    return call(torch::jit::pickle_load(request));
  } catch (const std::exception& error) {
    return std::string(error.what());
  }
}

}  // namespace

// Arguments: the libraries of plugins. Prints the instruction set of each, then answers.
int main(int count, char** paths) {
  for (int at = 1; at < count; ++at) {
    void* library = dlopen(paths[at], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
    char error[4096] = "";
    const auto enter =
        reinterpret_cast<int (*)(char*, std::size_t)>(dlsym(library, "custom_pypto_register_v1"));
    if (enter(error, sizeof error) != 0) return std::fprintf(stderr, "%s\n", error), 1;
    const auto isa = reinterpret_cast<const char* (*)()>(dlsym(library, "custom_pypto_cpu_isa_v1"));
    const char* name = isa == nullptr ? "none" : isa();
    std::printf("%s%c", name == nullptr ? "refused" : name, at + 1 < count ? ' ' : '\n');
  }
  std::fflush(stdout);
  int64_t size = 0;
  while (std::fread(&size, sizeof size, 1, stdin) == 1) {
    std::vector<char> request(static_cast<std::size_t>(size));
    if (std::fread(request.data(), 1, request.size(), stdin) != request.size()) return 1;
    const std::vector<char> answered = torch::jit::pickle_save(answer(request));
    size = static_cast<int64_t>(answered.size());
    std::fwrite(&size, sizeof size, 1, stdout);
    std::fwrite(answered.data(), 1, answered.size(), stdout);
    std::fflush(stdout);
  }
}
