// fail and check: errors of kernels, in their one form: `op: argument 'query' <text>`.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/placement.h>
#include <custom_pypto/printable.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/DeviceType.h>
#include <torch/headeronly/util/HeaderOnlyArrayRef.h>

#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

using torch::headeronly::DeviceType;
using torch::stable::Device;
using torch::stable::Tensor;

// The name in Python; PrivateUse1 is "npu", as torch_npu renames it.
inline const char* device_type_name(DeviceType type) noexcept {
  constexpr std::pair<DeviceType, const char*> kNames[] = {
      {DeviceType::CPU, "cpu"}, {DeviceType::CUDA, "cuda"}, {DeviceType::Meta, "meta"},
      {DeviceType::XPU, "xpu"}, {DeviceType::MPS, "mps"},   {DeviceType::PrivateUse1, "npu"},
  };
  for (const auto& [each, name] : kNames) {
    if (each == type) return name;
  }
  return "another device";
}

// The name of a tensor's dtype in Python. Unlike Tensor::scalar_type(), it takes every dtype of
// torch.
inline std::string dtype_name(const Tensor& tensor) {
  const int32_t code = detail::dtype_code(tensor);
  for (const detail::NamedDtype& each : detail::kDtypes) {
    if (detail::dtype_code(each.dtype) == code) return each.name;
  }
  // Not in the stable ABI, so the number is torch's own.
  std::string name = torch::headeronly::toString(static_cast<ScalarType>(code));
  for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
  return name;
}

namespace detail {

// Prints values as Python does: lists in brackets, an empty optional as None.
struct Printer {
  std::ostream& out;

  template <typename T>
  void operator()(const T& value) const {
    out << value;
  }
  void operator()(bool value) const { out << (value ? "true" : "false"); }
  // Its sign has no meaning, and C++ prints it.
  void operator()(double value) const { std::isnan(value) ? out << "nan" : out << value; }
  void operator()(ScalarType dtype) const { out << dtype_name(dtype); }
  void operator()(const Device& device) const {
    out << device_type_name(device.type());
    if (device.type() != DeviceType::CPU && device.index() >= 0) out << ':' << device.index();
  }
  void operator()(const Tensor& tensor) const {
    (*this)(dtype_name(tensor));
    (*this)(tensor.sizes());
  }
  template <typename T>
  void operator()(const torch::headeronly::HeaderOnlyArrayRef<T>& values) const {
    print_list(values.begin(), values.end());
  }
  template <typename T>
  void operator()(const std::vector<T>& values) const {
    print_list(values.begin(), values.end());
  }
  template <typename T>
  void operator()(const std::optional<T>& value) const {
    value.has_value() ? (*this)(*value) : (*this)("None");
  }

  template <typename Iterator>
  void print_list(Iterator begin, Iterator end) const {
    out << '[';
    for (Iterator it = begin; it != end; ++it) {
      if (it != begin) out << ", ";
      (*this)(*it);
    }
    out << ']';
  }
};

}  // namespace detail

// An argument in an error, or with an index the tensor there in a list: "xs[2]".
struct ArgumentName {
  ArgumentName(const char* argument, int64_t position = -1) : name(argument), index(position) {}

  friend std::ostream& operator<<(std::ostream& out, const ArgumentName& argument) {
    out << argument.name;
    return argument.index < 0 ? out : out << '[' << argument.index << ']';
  }

  const char* name;
  int64_t index;
};

// Throws std::runtime_error (in Python RuntimeError) "op: argument 'argument' part part ...", or
// "op: part part ..." where `argument` is null. Integer lists, dtypes, devices, optionals and
// tensors (dtype and shape) print readably; the whole text is `printable`, on one line.
template <typename... Parts>
[[noreturn]] CUSTOM_PYPTO_COLD void fail(const char* op, ArgumentName argument,
                                         const Parts&... parts) {
  std::ostringstream out;
  out << op << ": ";
  if (argument.name != nullptr) out << "argument '" << argument << "' ";
  const detail::Printer print{out};
  (print(parts), ...);
  throw std::runtime_error(printable(out.str()));
}

// fail(op, argument, parts...) unless `condition`; the parts are printed only then.
template <typename... Parts>
void check(bool condition, const char* op, ArgumentName argument, const Parts&... parts) {
  if (CUSTOM_PYPTO_UNLIKELY(!condition)) fail(op, argument, parts...);
}

CUSTOM_PYPTO_NAMESPACE_END
