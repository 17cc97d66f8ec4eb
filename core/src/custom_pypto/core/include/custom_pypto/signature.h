// A function's C++ type as tuples of its arguments and results.
#pragma once

#include <custom_pypto/abi.h>

#include <tuple>
#include <type_traits>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

template <typename R>
struct ReturnTypes {
  using Tuple = std::tuple<std::remove_cv_t<R>>;
};
template <>
struct ReturnTypes<void> {
  using Tuple = std::tuple<>;
};
template <typename... R>
struct ReturnTypes<std::tuple<R...>> {
  using Tuple = std::tuple<R...>;
};

template <typename F>
struct FunctionTraits;
template <typename R, typename... A>
struct FunctionTraits<R (*)(A...)> {
  using Return = R;
  using Returns = typename ReturnTypes<R>::Tuple;
  using Arguments = std::tuple<A...>;
};

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
