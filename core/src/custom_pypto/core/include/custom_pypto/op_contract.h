// What the structs of ops.h, which the build generates from ops.toml, are written in terms of.
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
#include <optional>
#include <ostream>
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

  int64_t operator[](int64_t index) const { return data[index]; }
  const int64_t* begin() const { return data; }
  const int64_t* end() const { return data + size; }
  operator IntHeaderOnlyArrayRef() const { return {data, static_cast<std::size_t>(size)}; }

  friend bool operator==(const Span& a, const Span& b) {
    return a.size == b.size && std::equal(a.begin(), a.end(), b.begin());
  }
  friend std::ostream& operator<<(std::ostream& out, const Span& sizes) {
    detail::print_list(out, sizes.begin(), sizes.end());
    return out;
  }
};

// A tensor argument under check: what of it is compared, read once.
struct View {
  explicit View(const Tensor& of)
      : tensor(of), dtype(detail::dtype_code(of)), placement(detail::placement_of(of)) {
    const auto all = of.sizes();
    sizes = all.data();
    rank = static_cast<int64_t>(all.size());
  }

  const Tensor& tensor;
  const int64_t* sizes = nullptr;
  int64_t rank = 0;
  int32_t dtype;
  detail::Placement placement;
};

// Whether the dtype with this code is one of `dtypes`.
template <ScalarType... dtypes>
bool dtype_is_of(int32_t code) {
  static const uint64_t codes = ((uint64_t{1} << detail::dtype_code(dtypes)) | ...);
  return (codes >> code & 1) != 0;
}

// The sizes of a span, and then `rest`.
inline std::vector<int64_t> joined(const Span& first, std::initializer_list<int64_t> rest) {
  std::vector<int64_t> sizes(first.begin(), first.end());
  sizes.insert(sizes.end(), rest);
  return sizes;
}

namespace detail {

[[noreturn]] CUSTOM_PYPTO_COLD inline void fail_output(const char* op, const char* output,
                                                       IntHeaderOnlyArrayRef sizes,
                                                       const std::exception& error) {
  fail(op, nullptr, "cannot allocate the output '", output, "' ", sizes, ": ", error.what());
}

}  // namespace detail

// An output, uninitialised, on the device of `like` and with its dtype, or `dtype`.
inline Tensor empty_output(const char* op, const char* output, IntHeaderOnlyArrayRef sizes,
                           const Tensor& like) {
  try {
    return empty(sizes, like);
  } catch (const std::exception& error) {
    detail::fail_output(op, output, sizes, error);
  }
}
inline Tensor empty_output(const char* op, const char* output, IntHeaderOnlyArrayRef sizes,
                           const Tensor& like, ScalarType dtype) {
  try {
    return empty(sizes, dtype, like);
  } catch (const std::exception& error) {
    detail::fail_output(op, output, sizes, error);
  }
}

// An output with shape, dtype, device and strides of `like`.
inline Tensor empty_output_like(const char* op, const char* output, const Tensor& like) {
  try {
    return torch::stable::empty_like(like);
  } catch (const std::exception& error) {
    detail::fail_output(op, output, like.sizes(), error);
  }
}

// Checks the arguments, then runs a kernel of `Op` in one of its forms.
template <class Op, auto kernel>
typename Op::Outputs run_kernel(const typename Op::Arguments& arguments) {
  using Arguments = typename Op::Arguments;
  using Sizes = typename Op::Sizes;
  using Outputs = typename Op::Outputs;
  using Kernel = decltype(kernel);
  constexpr bool makes = std::is_convertible_v<Kernel, Outputs (*)(const Arguments&, const Sizes&)>;
  constexpr bool fills =
      std::is_convertible_v<Kernel, void (*)(const Arguments&, const Sizes&, const Outputs&)>;
  static_assert(makes || fills,
                "custom_pypto: a kernel of an op in ops.h is void(const Arguments&, const Sizes&, "
                "const Outputs&), or Outputs(const Arguments&, const Sizes&)");
  if constexpr (makes) {
    return kernel(arguments, Op::check(arguments));
  } else if constexpr (fills) {
    const Sizes sizes = Op::check(arguments);
    Outputs outputs = Op::allocate(arguments, sizes);
    kernel(arguments, sizes, outputs);
    return outputs;
  }
}

CUSTOM_PYPTO_NAMESPACE_END
