// dtype_of: the dtype of a C++ type. visit_dtype: the C++ type of a dtype, at run time.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

CUSTOM_PYPTO_NAMESPACE_BEGIN

using torch::headeronly::BFloat16;
using torch::headeronly::Half;

// Bytes of one element.
inline std::size_t dtype_size(ScalarType dtype) {
  return aoti_torch_dtype_element_size(detail::dtype_code(dtype));
}

namespace detail {

template <typename T>
struct DtypeOf {
  static_assert(!std::is_same_v<T, T>, "custom_pypto: no dtype holds elements of this C++ type");
};

#define CUSTOM_PYPTO_DTYPE_OF(type, name)                 \
  template <>                                             \
  struct DtypeOf<type> {                                  \
    static constexpr ScalarType value = ScalarType::name; \
  };
CUSTOM_PYPTO_DTYPE_OF(uint8_t, Byte)
CUSTOM_PYPTO_DTYPE_OF(int8_t, Char)
CUSTOM_PYPTO_DTYPE_OF(int16_t, Short)
CUSTOM_PYPTO_DTYPE_OF(int32_t, Int)
CUSTOM_PYPTO_DTYPE_OF(int64_t, Long)
CUSTOM_PYPTO_DTYPE_OF(Half, Half)
CUSTOM_PYPTO_DTYPE_OF(BFloat16, BFloat16)
CUSTOM_PYPTO_DTYPE_OF(float, Float)
CUSTOM_PYPTO_DTYPE_OF(double, Double)
CUSTOM_PYPTO_DTYPE_OF(bool, Bool)
#undef CUSTOM_PYPTO_DTYPE_OF

}  // namespace detail

// dtype_of<float> is ScalarType::Float.
template <typename T>
inline constexpr ScalarType dtype_of = detail::DtypeOf<T>::value;

template <typename T>
struct TypeTag {
  using type = T;
};

namespace detail {

template <typename... Types>
[[noreturn]] CUSTOM_PYPTO_COLD void fail_dtype(const char* op, const char* argument,
                                               ScalarType dtype) {
  std::string allowed;
  std::size_t left = sizeof...(Types);
  for (const ScalarType each : {dtype_of<Types>...}) {
    allowed += dtype_name(each);
    if (--left > 0) allowed += left == 1 ? " or " : ", ";
  }
  fail(op, argument, "must be ", allowed, ", got ", dtype);
}

// `all` lists the types that the first call tried.
template <typename First, typename... Rest, typename... All, typename F>
decltype(auto) visit_dtype(TypeTag<void(All...)> all, const char* op, const char* argument,
                           ScalarType dtype, F& f) {
  if (dtype == dtype_of<First>) return f(TypeTag<First>{});
  if constexpr (sizeof...(Rest) == 0) {
    fail_dtype<All...>(op, argument, dtype);
  } else {
    return visit_dtype<Rest...>(all, op, argument, dtype, f);
  }
}

}  // namespace detail

// Calls f(TypeTag<T>{}) for that T of Types whose dtype is `dtype` and returns what it returns:
//   visit_dtype<float, Half>("my_op", "x", x.scalar_type(), [&](auto tag) {
//     using T = typename decltype(tag)::type;
//     ...
//   });
// If there is none, throws std::runtime_error that names op, argument and the dtypes of Types.
template <typename... Types, typename F>
decltype(auto) visit_dtype(const char* op, const char* argument, ScalarType dtype, F&& f) {
  return detail::visit_dtype<Types...>(TypeTag<void(Types...)>{}, op, argument, dtype, f);
}

CUSTOM_PYPTO_NAMESPACE_END
