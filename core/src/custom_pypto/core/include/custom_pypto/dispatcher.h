// call_op: calls any op, of this project or of aten, through torch's dispatcher.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/boxing.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/value.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// The type that a schema has for a C++ argument: int64_t for any integer, std::string_view for a
// literal.
template <typename T>
struct CallArgument {
  using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
  using type = std::conditional_t<
      std::is_same_v<Plain, bool>, bool,
      std::conditional_t<
          std::is_integral_v<Plain>, int64_t,
          std::conditional_t<
              std::is_floating_point_v<Plain>, double,
              std::conditional_t<std::is_convertible_v<T, const char*>, std::string_view, Plain>>>>;
};

template <>
struct Value<std::nullopt_t> {
  static void release(StableIValue) noexcept {}
  static StableIValue to_stack(std::nullopt_t) { return torch::stable::detail::from(std::nullopt); }
};

template <typename Returns>
struct CallReturns;
template <typename... R>
struct CallReturns<std::tuple<R...>> {
  template <std::size_t... O>
  static std::tuple<R...> from_stack(StableIValue* stack, std::index_sequence<O...>) {
    StackGuard<sizeof...(R)> guard{stack, Elements<std::tuple<R...>>::release, 0, sizeof...(R)};
    return std::tuple<R...>{Value<R>::from_stack((static_cast<void>(O), guard.next()))...};
  }
};

}  // namespace detail

// Calls `name` (with its namespace) and `overload` ("" for none) through the dispatcher:
//   call_op<Tensor>("aten::mm", "", a, b)
//   call_op<std::tuple<Tensor, Tensor>>("aten::topk", "", x, k, -1, true, true)
// Ret is what the schema returns: void, one type, or a std::tuple. Pass every argument of the
// schema, defaults included, with the type that the schema has: for `int?` a std::optional<int64_t>
// or std::nullopt, never a plain int. This is not checked: libtorch's C interface shows no
// schemas. Throws std::runtime_error "<name>: <the reason>" when the op fails or does not exist.
template <typename Ret, typename... Args>
Ret call_op(const char* name, const char* overload, const Args&... args) {
  using Returns = typename detail::ReturnTypes<Ret>::Tuple;
  using Sent = std::tuple<typename detail::CallArgument<const Args&>::type...>;
  constexpr std::size_t returned = std::tuple_size_v<Returns>;
  std::array<StableIValue, std::max<std::size_t>({sizeof...(Args), returned, 1})> stack;
  {
    std::size_t next = 0;
    detail::StackGuard<sizeof...(Args)> guard{stack.data(), detail::Elements<Sent>::release, 0, 0};
    ((stack[next] =
          detail::ValueOf<typename detail::CallArgument<const Args&>::type>::to_stack(args),
      guard.end = ++next),
     ...);
    guard.end = 0;
  }
  if (CUSTOM_PYPTO_UNLIKELY(torch_call_dispatcher(name, overload, stack.data(),
                                                  TORCH_ABI_VERSION) != AOTI_TORCH_SUCCESS)) {
    const std::string full = *overload == '\0' ? name : std::string(name) + "." + overload;
    detail::throw_torch_error(full.c_str());
  }
  if constexpr (std::is_same_v<Ret, Returns>) {
    return detail::CallReturns<Returns>::from_stack(stack.data(),
                                                    std::make_index_sequence<returned>());
  } else if constexpr (!std::is_void_v<Ret>) {
    return detail::Value<Ret>::from_stack(stack[0]);
  }
}

CUSTOM_PYPTO_NAMESPACE_END
