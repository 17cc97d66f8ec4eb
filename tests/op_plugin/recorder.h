// A kernel that writes what it gets, instead of computing: one line of JSON for each launch, into
// the file that RECORDED_LAUNCHES names.
#pragma once

#include <custom_pypto_simulator/objects.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace recorder {

class Nothing final : public custom_pypto_simulator::PreparedOp {
 public:
  void run(void*, uint64_t) override {}
  std::shared_ptr<PreparedOp> with_storages(void* const*) const override { return nullptr; }
};

// Each argument is a list: its kind, and its value. A tensor is its address, offset, dtype, shape.
class Launch {
 public:
  explicit Launch(const char* kernel) : kernel_(kernel) {}

  template <class... Args>
  int record(uint64_t* workspace_size, aclOpExecutor** executor, Args... args) {
    text_ << "[\"" << kernel_ << '"';
    ((text_ << ", ", write(args)), ...);
    text_ << "]\n";
    std::ofstream(std::getenv("RECORDED_LAUNCHES"), std::ios::app) << text_.str();
    custom_pypto_simulator::WatchedArguments watched;
    std::shared_ptr<custom_pypto_simulator::PreparedOp> op = std::make_shared<Nothing>();
    return custom_pypto_sim_make_executor(kernel_, 0, &watched, &op, workspace_size, executor);
  }

 private:
  void write(const aclTensor* tensor) {
    if (tensor == nullptr) {
      text_ << "[\"no tensor\"]";
      return;
    }
    text_ << "[\"tensor\", " << reinterpret_cast<uintptr_t>(tensor->data) << ", " << tensor->offset
          << ", " << static_cast<int>(tensor->dtype);
    for (const int64_t size : tensor->shape) text_ << ", " << size;
    text_ << ']';
  }
  void write(const aclTensorList* list) {
    text_ << "[\"tensors\"";
    if (list != nullptr) {
      for (const aclTensor* each : list->values) {
        text_ << ", ";
        write(each);
      }
    }
    text_ << ']';
  }
  void write(const char* text) {
    text_ << "[\"text\", \"" << (text == nullptr ? "" : text) << "\"]";
  }
  template <class Number>
  void write(Number number) {
    text_ << "[\"number\", " << +number << ']';
  }
  template <class Array>
  void write(const Array* array) {
    text_ << "[\"numbers\"";
    if (array != nullptr) {
      for (const auto each : array->values) text_ << ", " << +each;
    }
    text_ << ']';
  }

  const char* kernel_;
  std::ostringstream text_;
};

}  // namespace recorder

#define RECORDED(kernel, parameters, ...)                                                     \
  extern "C" __attribute__((visibility("default"))) int kernel##GetWorkspaceSize parameters { \
    return recorder::Launch(#kernel).record(size, executor __VA_OPT__(, ) __VA_ARGS__);       \
  }                                                                                           \
  extern "C" __attribute__((visibility("default"))) int kernel(                               \
      void* workspace, uint64_t bytes, aclOpExecutor* executor, aclrtStream stream) {         \
    return custom_pypto_sim_launch(#kernel, workspace, bytes, executor, stream);              \
  }
