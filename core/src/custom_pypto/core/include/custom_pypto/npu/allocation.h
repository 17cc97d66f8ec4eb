// Results on an NPU, allocated as the ops of torch_npu itself allocate theirs: torch's C interface
// has empty_strided alone, for which torch_npu makes an empty tensor and then resizes it.
#pragma once

#include <custom_pypto/abi.h>
#include <dlfcn.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {
namespace detail {

// As at::Tensor and c10::IntArrayRef are passed: the destructor is not trivial, so that the caller
// says where the result is made.
struct ReturnedTensor {
  ReturnedTensor(const ReturnedTensor&) = delete;
  // What it refers to belongs to the handle that its memory becomes.
  ~ReturnedTensor() {}
  void* implementation;
};
struct Sizes {
  const int64_t* data;
  std::size_t rank;
};
using ApplyTensor = ReturnedTensor (*)(const void* like, Sizes sizes);

inline ApplyTensor find_apply_tensor() {
  void* library = dlopen("libtorch_npu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<ApplyTensor>(dlsym(library,
                                             "_ZN6at_npu6native13OpPreparation27apply_tensor_"
                                             "without_formatERKN2at6TensorEN3c108ArrayRefIlEE"));
}

// A contiguous tensor with the dtype and on the device of `like`, which is on an NPU. Null when
// there is no torch_npu that can; throws what torch_npu throws.
inline AtenTensorHandle allocate(const torch::stable::Tensor& like, Sizes sizes) {
  static const ApplyTensor apply_tensor = find_apply_tensor();
  if (apply_tensor == nullptr) return nullptr;
  struct Delete {
    void operator()(void* memory) const noexcept { ::operator delete(memory); }
  };
  std::unique_ptr<void, Delete> memory(::operator new(sizeof(ReturnedTensor)));
  new (memory.get()) ReturnedTensor(apply_tensor(like.get(), sizes));
  // A handle is an at::Tensor that torch deletes.
  return static_cast<AtenTensorHandle>(memory.release());
}

}  // namespace detail
}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
