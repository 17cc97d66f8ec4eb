// fail and check: errors of kernels, in their one form: `op: argument 'query' <text>`.
#pragma once

#include <custom_pypto/abi.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/DeviceType.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/HeaderOnlyArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

using torch::headeronly::DeviceType;
using torch::headeronly::ScalarType;
using torch::stable::Device;
using torch::stable::Tensor;

// The name in Python, without "torch.": "float16" for ScalarType::Half.
inline const char* dtype_name(ScalarType dtype) noexcept {
  switch (dtype) {
    case ScalarType::Byte:
      return "uint8";
    case ScalarType::Char:
      return "int8";
    case ScalarType::Short:
      return "int16";
    case ScalarType::Int:
      return "int32";
    case ScalarType::Long:
      return "int64";
    case ScalarType::Half:
      return "float16";
    case ScalarType::Float:
      return "float32";
    case ScalarType::Double:
      return "float64";
    case ScalarType::ComplexHalf:
      return "complex32";
    case ScalarType::ComplexFloat:
      return "complex64";
    case ScalarType::ComplexDouble:
      return "complex128";
    case ScalarType::Bool:
      return "bool";
    case ScalarType::BFloat16:
      return "bfloat16";
    case ScalarType::Float8_e5m2:
      return "float8_e5m2";
    case ScalarType::Float8_e4m3fn:
      return "float8_e4m3fn";
    case ScalarType::UInt16:
      return "uint16";
    case ScalarType::UInt32:
      return "uint32";
    case ScalarType::UInt64:
      return "uint64";
    default:
      return torch::headeronly::toString(dtype);
  }
}

// The name in Python; PrivateUse1 is "npu", as torch_npu renames it.
inline const char* device_type_name(DeviceType type) noexcept {
  switch (type) {
    case DeviceType::CPU:
      return "cpu";
    case DeviceType::CUDA:
      return "cuda";
    case DeviceType::Meta:
      return "meta";
    case DeviceType::XPU:
      return "xpu";
    case DeviceType::MPS:
      return "mps";
    case DeviceType::PrivateUse1:
      return "npu";
    default:
      return "another device";
  }
}

namespace detail {

template <typename T>
void print(std::ostream& out, const T& value) {
  out << value;
}

inline void print(std::ostream& out, bool value) { out << (value ? "true" : "false"); }

inline void print(std::ostream& out, ScalarType dtype) { out << dtype_name(dtype); }

inline void print(std::ostream& out, const Device& device) {
  out << device_type_name(device.type());
  if (device.type() != DeviceType::CPU && device.index() >= 0) out << ':' << device.index();
}

template <typename T>
void print(std::ostream& out, const torch::headeronly::HeaderOnlyArrayRef<T>& values);
template <typename T>
void print(std::ostream& out, const std::vector<T>& values);
template <typename T>
void print(std::ostream& out, const std::optional<T>& value);
inline void print(std::ostream& out, const Tensor& tensor);

template <typename Iterator>
void print_list(std::ostream& out, Iterator begin, Iterator end) {
  out << '[';
  for (Iterator it = begin; it != end; ++it) {
    if (it != begin) out << ", ";
    print(out, *it);
  }
  out << ']';
}

template <typename T>
void print(std::ostream& out, const torch::headeronly::HeaderOnlyArrayRef<T>& values) {
  print_list(out, values.begin(), values.end());
}

template <typename T>
void print(std::ostream& out, const std::vector<T>& values) {
  print_list(out, values.begin(), values.end());
}

inline void print(std::ostream& out, const Tensor& tensor) {
  print(out, tensor.scalar_type());
  print(out, tensor.sizes());
}

template <typename T>
void print(std::ostream& out, const std::optional<T>& value) {
  if (value.has_value()) {
    print(out, *value);
  } else {
    out << "None";
  }
}

// Prints "a", "a or b", "a, b or c".
template <typename T, typename Print>
void print_choices(std::ostream& out, const T* begin, const T* end, const Print& print_one) {
  for (const T* it = begin; it != end; ++it) {
    if (it != begin) out << (it + 1 == end ? " or " : ", ");
    print_one(*it);
  }
}

}  // namespace detail

// Throws std::runtime_error (in Python RuntimeError) "op: argument 'argument' part part ...", or
// "op: part part ..." where `argument` is null. Integer lists, dtypes, devices, optionals and
// tensors (dtype and shape) print readably.
template <typename... Parts>
[[noreturn]] CUSTOM_PYPTO_COLD void fail(const char* op, const char* argument,
                                         const Parts&... parts) {
  std::ostringstream out;
  out << op << ": ";
  if (argument != nullptr) out << "argument '" << argument << "' ";
  (detail::print(out, parts), ...);
  throw std::runtime_error(out.str());
}

// fail(op, argument, parts...) unless `condition`; the parts are printed only then.
template <typename... Parts>
void check(bool condition, const char* op, const char* argument, const Parts&... parts) {
  if (CUSTOM_PYPTO_UNLIKELY(!condition)) fail(op, argument, parts...);
}

CUSTOM_PYPTO_NAMESPACE_END
