// The types and functions that ops.h uses, which the build generates from ops.toml.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/message.h>
#include <custom_pypto/placement.h>
#include <custom_pypto/plugin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <limits>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// The sizes that a dim such as *tokens stands for; borrowed from the tensor that bound it.
struct Span {
  const int64_t* data = nullptr;
  int64_t size = -1;

  // From the end where `index` is negative; -1 where there is none.
  int64_t operator[](int64_t index) const {
    if (index < 0) index += size;
    return index < 0 || index >= size ? -1 : data[index];
  }
  const int64_t* begin() const { return data; }
  const int64_t* end() const { return data + size; }
  operator IntHeaderOnlyArrayRef() const { return {data, static_cast<std::size_t>(size)}; }

  friend bool operator==(const Span& a, const Span& b) {
    return a.size == b.size && std::equal(a.begin(), a.end(), b.begin());
  }
  friend std::ostream& operator<<(std::ostream& out, const Span& sizes) {
    detail::Printer{out}.print_list(sizes.begin(), sizes.end());
    return out;
  }
};

// The sizes of a dim such as M[i]: one for each tensor of a list.
template <typename T>
class OfElements {
 public:
  // A Span is borrowed from the tensor.
  void add(const T& size) { values_.push_back(size); }
  // The size of the tensor at `index`, which is counted from the end where it is negative.
  T operator[](int64_t index) const {
    if (index < 0) index += size();
    if (index >= 0 && index < size()) return values_[static_cast<std::size_t>(index)];
    if constexpr (std::is_integral_v<T>) return -1;
    return T();
  }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<T> values_;
};

inline int64_t length(const std::vector<Tensor>& list) { return static_cast<int64_t>(list.size()); }

// A tensor argument under check: the parts that are compared, read once. Empty for None. For a list
// they are its length, and the parts of its first tensor.
struct TensorInfo {
  explicit TensorInfo(const Tensor& of)
      : tensor(&of), dtype(detail::dtype_code(of)), placement(detail::placement_of(of)) {
    const auto all = of.sizes();
    sizes = all.data();
    ndim = static_cast<int64_t>(all.size());
  }
  explicit TensorInfo(const std::optional<Tensor>& of) : TensorInfo() {
    if (of.has_value()) *this = TensorInfo(*of);
  }
  explicit TensorInfo(const std::vector<Tensor>& of) : TensorInfo() {
    if (!of.empty()) *this = TensorInfo(of.front());
    length = custom_pypto::length(of);
  }
  explicit TensorInfo(const std::optional<std::vector<Tensor>>& of) : TensorInfo() {
    if (of.has_value()) *this = TensorInfo(*of);
  }

  // Size and stride of a dimension, from the end where `index` is negative; -1 where there is none.
  int64_t size(int64_t index) const { return Span{sizes, ndim}[index]; }
  int64_t stride(int64_t index) const { return strides()[index]; }
  // The sizes before the dimension `end`, which is counted from the end where it is negative.
  Span sizes_until(int64_t end) const {
    const int64_t count = end < 0 ? ndim + end : end;
    return {sizes, count < 0 ? 0 : count > ndim ? ndim : count};
  }
  Span sizes_until() const { return {sizes, ndim}; }
  Span strides() const { return {tensor == nullptr ? nullptr : tensor->strides().data(), ndim}; }
  bool is_contiguous() const { return tensor != nullptr && tensor->is_contiguous(); }

  const Tensor* tensor = nullptr;
  const int64_t* sizes = nullptr;
  int64_t ndim = 0;
  int32_t dtype = -1;
  int64_t length = 0;
  detail::Placement placement{};

 private:
  TensorInfo() = default;
};

// The number `inf` in ops.toml.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The operands of an operation in an expression of ops.toml, and the op whose call has them. A
// result that does not fit into 64 bits is an error. Braces evaluate their elements from left to
// right, as Python does: kernel and fake name the same fault.
template <typename A, typename B>
struct Operands {
  const char* op;
  A a;
  B b;

  auto sum() const {
    if constexpr (kIsInteger) {
      int64_t result = 0;
      expect_fit(!__builtin_add_overflow(a, b, &result), "+");
      return result;
    } else {
      return a + b;
    }
  }
  auto difference() const {
    if constexpr (kIsInteger) {
      int64_t result = 0;
      expect_fit(!__builtin_sub_overflow(a, b, &result), "-");
      return result;
    } else {
      return a - b;
    }
  }
  auto product() const {
    if constexpr (kIsInteger) {
      int64_t result = 0;
      expect_fit(!__builtin_mul_overflow(a, b, &result), "*");
      return result;
    } else {
      return a * b;
    }
  }
  // As Python's // and %. By 0, which a size may be, they give 0 and `a`.
  int64_t quotient() const {
    const int64_t n = a;
    const int64_t d = b;
    if (d == 0) return 0;
    // The processor divides the least number by -1 with an exception.
    expect_fit(d != -1 || n != INT64_MIN, "//");
    return n / d - (n % d != 0 && (n < 0) != (d < 0) ? 1 : 0);
  }
  int64_t remainder() const {
    const int64_t n = a;
    const int64_t d = b;
    if (d == 0) return n;
    const int64_t rest = d == -1 ? 0 : n % d;
    return rest != 0 && (rest < 0) != (d < 0) ? rest + d : rest;
  }

 private:
  static constexpr bool kIsInteger = std::is_integral_v<A> && std::is_integral_v<B>;

  void expect_fit(bool fits, const char* sign) const {
    if (CUSTOM_PYPTO_UNLIKELY(!fits)) fail_to_fit(sign);
  }
  [[noreturn]] CUSTOM_PYPTO_COLD void fail_to_fit(const char* sign) const {
    fail(op, nullptr, "its arguments give ", a, " ", sign, " ", b,
         ", which does not fit into 64 bits");
  }
};
template <typename A, typename B>
Operands(const char*, A, B) -> Operands<A, B>;

// A bit for the code of each dtype. A member, since GCC exports a template of a variable.
template <ScalarType... dtypes>
struct DtypeCodes {
  static inline const uint64_t value = ((uint64_t{1} << detail::dtype_code(dtypes)) | ...);
};

// Whether the dtype with this code is one of `dtypes`.
template <ScalarType... dtypes>
bool dtype_is_of(int32_t code) {
  return (DtypeCodes<dtypes...>::value >> code & 1) != 0;
}

// The sizes of a span, and then `rest`.
inline std::vector<int64_t> joined(const Span& first, std::initializer_list<int64_t> rest) {
  std::vector<int64_t> sizes(first.begin(), first.end());
  sizes.insert(sizes.end(), rest);
  return sizes;
}

namespace detail {

// Calls make(); its error names the output that cannot be allocated.
template <typename Make>
Tensor make_output(const char* op, ArgumentName output, IntHeaderOnlyArrayRef sizes,
                   const Make& make) {
  try {
    return make();
  } catch (const std::exception& error) {
    fail(op, nullptr, "cannot allocate the output '", output, "' ", sizes, ": ", error.what());
  }
}

}  // namespace detail

// An output, uninitialised, on the device of `like` and with its dtype, or `dtype`.
inline Tensor empty_output(const char* op, ArgumentName output, IntHeaderOnlyArrayRef sizes,
                           const Tensor& like) {
  return detail::make_output(op, output, sizes, [&] { return empty(sizes, like); });
}
inline Tensor empty_output(const char* op, ArgumentName output, IntHeaderOnlyArrayRef sizes,
                           const Tensor& like, ScalarType dtype) {
  return detail::make_output(op, output, sizes, [&] { return empty(sizes, dtype, like); });
}

// An output with shape, dtype, device and strides of `like`.
inline Tensor empty_output_like(const char* op, ArgumentName output, const Tensor& like) {
  return detail::make_output(op, output, like.sizes(),
                             [&] { return torch::stable::empty_like(like); });
}

inline std::vector<Tensor> empty_output_like(const char* op, ArgumentName output,
                                             const std::vector<Tensor>& like) {
  std::vector<Tensor> made;
  made.reserve(like.size());
  for (const Tensor& each : like) {
    made.push_back(empty_output_like(op, {output.name, length(made)}, each));
  }
  return made;
}

// An output that is a list: make(i, name) gives each tensor.
template <typename Make>
std::vector<Tensor> list_of_outputs(int64_t count, const char* output, const Make& make) {
  std::vector<Tensor> made;
  made.reserve(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) made.push_back(make(i, ArgumentName(output, i)));
  return made;
}

inline bool has_no_elements(const Tensor& output) { return output.numel() == 0; }
inline bool has_no_elements(const std::vector<Tensor>& output) {
  return std::all_of(output.begin(), output.end(),
                     [](const Tensor& each) { return each.numel() == 0; });
}

namespace detail {

template <class Op, typename = void>
inline constexpr bool allocates = false;
template <class Op>
inline constexpr bool allocates<
    Op, std::void_t<decltype(Op::allocate(std::declval<const typename Op::Arguments&>(),
                                          std::declval<const typename Op::CallShape&>()))>> = true;

}  // namespace detail

// Checks the arguments, then runs a kernel of `Op` in one of its forms.
template <class Op, auto kernel>
typename Op::Outputs run_kernel(const typename Op::Arguments& arguments) {
  using Arguments = typename Op::Arguments;
  using CallShape = typename Op::CallShape;
  using Outputs = typename Op::Outputs;
  using Kernel = decltype(kernel);
  constexpr bool makes =
      std::is_convertible_v<Kernel, Outputs (*)(const Arguments&, const CallShape&)>;
  constexpr bool fills =
      std::is_convertible_v<Kernel, void (*)(const Arguments&, const CallShape&, const Outputs&)>;
  if constexpr (makes) {
    return kernel(arguments, Op::check(arguments));
  } else if constexpr (fills && detail::allocates<Op>) {
    const CallShape sizes = Op::check(arguments);
    Outputs outputs = Op::allocate(arguments, sizes);
    kernel(arguments, sizes, outputs);
    return outputs;
  } else if constexpr (detail::allocates<Op>) {
    static_assert(makes || fills,
                  "custom_pypto: a kernel of an op in ops.h is void(const Arguments&, const "
                  "CallShape&, const Outputs&), or Outputs(const Arguments&, const CallShape&)");
    return Op::allocate(arguments, CallShape());
  } else {
    static_assert(makes,
                  "custom_pypto: ops.toml does not say what this op's outputs are, so its kernel "
                  "is Outputs(const Arguments&, const CallShape&)");
    throw std::logic_error("unreachable");
  }
}

CUSTOM_PYPTO_NAMESPACE_END
