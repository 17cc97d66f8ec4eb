// Conversion of arguments of the C signature to the C++ parameters of a simulated kernel.
//
//   C++ parameter                       C argument           in the graph engine's op
//   at::Tensor                          const aclTensor*     input
//   Optional, std::optional<at::Tensor> const aclTensor*     optional input
//   std::vector<at::Tensor>             const aclTensorList* dynamic input
//   std::vector<aclTensor>              const aclTensorList* dynamic input, raw
//   at::Tensor&                         aclTensor*           output, or written in place
//   DynamicOutput                       aclTensor*           output whose shape the kernel sets
//   const aclTensor&                    const aclTensor*     input, as it was marshalled
//   at::Scalar, optional of it          const aclScalar*
//   std::vector<int64_t>, optional      const aclIntArray*   attribute
//   std::vector<float>, optional        const aclFloatArray* attribute
//   std::vector<bool>, optional         const aclBoolArray*  attribute
//   std::string, optional               const char*          attribute
//   at::ScalarType                      aclDataType          attribute
//   int64_t, int32_t, int8_t, uint64_t, float, double, bool: themselves, attribute
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Scalar.h>

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "custom_pypto_simulator/dtype.h"
#include "custom_pypto_simulator/need.h"
#include "custom_pypto_simulator/objects.h"

namespace custom_pypto_simulator {

using Optional = std::optional<at::Tensor>;

// Throws unless the tensor is a strided view that stays inside its storage.
inline void check_tensor(const aclTensor& tensor) {
  switch (tensor.format) {
    case ACL_FORMAT_ND:
    case ACL_FORMAT_NCHW:
    case ACL_FORMAT_NHWC:
    case ACL_FORMAT_NCDHW:
    case ACL_FORMAT_NCL:
      break;
    default:
      refuse("storage format ", tensor.format,
             " has no strides; take a `const aclTensor&` to read it");
  }
  scalar_type(tensor.dtype);
  int64_t storage = 1;
  for (const int64_t size : tensor.storage_shape) storage *= size;
  int64_t last = tensor.offset;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return;
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  need(tensor.offset >= 0 && last < storage, "a tensor reaches element ", last, " of a storage of ",
       storage);
}

// The tensor's own memory, as a CPU tensor.
inline at::Tensor view(const aclTensor& tensor) {
  const auto item = static_cast<int64_t>(aclDataTypeSize(tensor.dtype));
  return at::from_blob(static_cast<char*>(tensor.data) + tensor.offset * item, tensor.shape,
                       tensor.strides, at::TensorOptions().dtype(scalar_type(tensor.dtype)));
}

// An output of the largest possible size, whose shape is known once the op has run.
class DynamicOutput {
 public:
  explicit DynamicOutput(aclTensor* handle) : handle_(handle), room_(view(*handle)) {}

  void set(const at::Tensor& value) {
    if (!handle_->alive) throw std::runtime_error("the output was destroyed before the op ran");
    room_.flatten().narrow(0, 0, value.numel()).copy_(value.flatten());
    handle_->shape.assign(value.sizes().begin(), value.sizes().end());
  }

 private:
  aclTensor* handle_;
  at::Tensor room_;
};

// Argument<T>::C is the C type; phase 1 keeps a Stored, from which T is made when the kernel runs.
// `watched` records what must not change until phase 2 begins.
template <class T, class = void>
struct Argument;

template <class T>
const T& required(const T* pointer) {
  need(pointer != nullptr, "a required argument is null");
  need(pointer->alive, "an argument was destroyed already");
  return *pointer;
}

template <class T>
struct Argument<T, std::enable_if_t<std::is_arithmetic_v<T>>> {
  using C = T;
  using Stored = T;
  static Stored store(C value, WatchedArguments&) { return value; }
  static T load(Stored& stored) { return stored; }
};

struct Raw {
  using C = const aclTensor*;
  using Stored = aclTensor;
  static Stored store(C tensor, WatchedArguments& watched) {
    watched.tensors.push_back(&required(tensor));
    return *tensor;
  }
};

template <>
struct Argument<const aclTensor&> : Raw {
  static const aclTensor& load(Stored& stored) { return stored; }
};

// A tensor whose memory the kernel sees through ATen.
struct Strided : Raw {
  static Stored store(C tensor, WatchedArguments& watched) {
    check_tensor(required(tensor));
    return Raw::store(tensor, watched);
  }
};

template <>
struct Argument<at::Tensor> : Strided {
  static at::Tensor load(Stored& stored) { return view(stored); }
};

// An assignment to the parameter would not reach the output, so it is an error.
class Output {
 public:
  explicit Output(const aclTensor& tensor) : tensor_(view(tensor)), before_(tensor_) {}
  ~Output() noexcept(false) {
    if (!tensor_.is_same(before_) && std::uncaught_exceptions() == 0) {
      throw std::logic_error("an output was assigned to; write into it with copy_");
    }
  }
  operator at::Tensor&() { return tensor_; }

 private:
  at::Tensor tensor_;
  at::Tensor before_;
};

template <>
struct Argument<at::Tensor&> : Strided {
  static Output load(Stored& stored) { return Output(stored); }
};

template <>
struct Argument<DynamicOutput> : Strided {
  using Stored = aclTensor*;
  static Stored store(C tensor, WatchedArguments& watched) {
    Strided::store(tensor, watched);
    return const_cast<aclTensor*>(tensor);
  }
  static DynamicOutput load(Stored& stored) { return DynamicOutput(stored); }
};

template <class Element>
struct TensorList {
  using C = const aclTensorList*;
  using Stored = std::vector<aclTensor>;
  static Stored store(C list, WatchedArguments& watched) {
    Stored stored;
    for (const aclTensor* tensor : required(list).values) {
      stored.push_back(Element::store(tensor, watched));
    }
    return stored;
  }
};

template <>
struct Argument<std::vector<aclTensor>> : TensorList<Raw> {
  static const std::vector<aclTensor>& load(Stored& stored) { return stored; }
};

template <>
struct Argument<std::vector<at::Tensor>> : TensorList<Strided> {
  static std::vector<at::Tensor> load(Stored& stored) {
    std::vector<at::Tensor> result;
    for (const aclTensor& tensor : stored) result.push_back(view(tensor));
    return result;
  }
};

template <>
struct Argument<at::Scalar> {
  using C = const aclScalar*;
  using Stored = at::Scalar;
  static Stored store(C scalar, WatchedArguments& watched) {
    aclScalar copy = required(scalar);
    watched.others.push_back([scalar] { return scalar->alive; });
    const auto options = at::TensorOptions().dtype(scalar_type(copy.dtype));
    return at::from_blob(copy.value, {}, options).item();
  }
  static at::Scalar load(Stored& stored) { return stored; }
};

template <class Object, class Element>
struct Array {
  using C = const Object*;
  using Stored = std::vector<Element>;
  static Stored store(C array, WatchedArguments& watched) {
    watched.others.push_back([array] { return array->alive; });
    return required(array).values;
  }
  static std::vector<Element> load(Stored& stored) { return stored; }
};

template <>
struct Argument<std::vector<int64_t>> : Array<aclIntArray, int64_t> {};
template <>
struct Argument<std::vector<float>> : Array<aclFloatArray, float> {};
template <>
struct Argument<std::vector<bool>> : Array<aclBoolArray, bool> {};

template <>
struct Argument<std::string> {
  using C = const char*;
  using Stored = std::string;
  static Stored store(C text, WatchedArguments& watched) {
    need(text != nullptr, "a required string is null");
    watched.others.push_back([text, before = std::string(text)] { return before == text; });
    return text;
  }
  static std::string load(Stored& stored) { return stored; }
};

template <>
struct Argument<at::ScalarType> {
  using C = aclDataType;
  using Stored = at::ScalarType;
  static Stored store(C dtype, WatchedArguments&) { return scalar_type(dtype); }
  static at::ScalarType load(Stored& stored) { return stored; }
};

template <class T>
struct Argument<std::optional<T>> {
  static_assert(std::is_pointer_v<typename Argument<T>::C>,
                "only what the C signature passes by pointer can be absent");
  using C = typename Argument<T>::C;
  using Stored = std::optional<typename Argument<T>::Stored>;
  static Stored store(C value, WatchedArguments& watched) {
    if (value == nullptr) return std::nullopt;
    return Argument<T>::store(value, watched);
  }
  static std::optional<T> load(Stored& stored) {
    if (!stored) return std::nullopt;
    return Argument<T>::load(*stored);
  }
};

// Whether a stored argument can be moved to other storages. An output whose shape the kernel sets
// is written through the object of phase 1, so it cannot.
template <class Stored>
constexpr bool can_move = !std::is_same_v<Stored, aclTensor*>;

// Moves the tensors to the next `addresses`, and advances it.
template <class Stored>
void move_to(Stored&, void* const*&) {}
inline void move_to(aclTensor& stored, void* const*& addresses) { stored.data = *addresses++; }
inline void move_to(std::vector<aclTensor>& stored, void* const*& addresses) {
  for (aclTensor& tensor : stored) move_to(tensor, addresses);
}
template <class Stored>
void move_to(std::optional<Stored>& stored, void* const*& addresses) {
  if (stored) move_to(*stored, addresses);
}

}  // namespace custom_pypto_simulator
