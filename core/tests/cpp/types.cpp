// Every type that a schema has, as argument and as return, and calls of other ops.
#include <custom_pypto/dispatcher.h>

#include <sstream>
#include <stdexcept>

#include "kernel.h"

namespace cp = custom_pypto;
using cp::Tensor;
using torch::headeronly::HeaderOnlyArrayRef;

namespace {

template <typename... Values>
std::string show(const Values&... values) {
  std::ostringstream out;
  const cp::detail::Printer print{out};
  ((print(values), out << ' '), ...);
  return out.str();
}

KERNEL(values, headers_values) { return {show(a.t, a.i, a.n, a.f, a.b, a.s, a.dtype, a.device)}; }

KERNEL(optionals, headers_optionals) { return {show(a.t, a.i, a.f, a.b, a.s, a.dtype, a.device)}; }

KERNEL(lists, headers_lists) { return {show(a.t, a.i, a.f, a.b, a.s, a.devices, a.o, a.maybe)}; }

KERNEL(optional_lists, headers_optional_lists) { return {show(a.t, a.i, a.f, a.b, a.s)}; }

KERNEL(many, headers_many) {
  const auto maybe = a.some ? std::optional<Tensor>(a.self) : std::nullopt;
  const auto number = a.some ? std::optional<int64_t>(5) : std::nullopt;
  return {a.self,
          {a.self, a.self},
          int64_t{1} << 40,
          0.5,
          true,
          "text",
          cp::ScalarType::Half,
          cp::Device(cp::DeviceType::Meta),
          maybe,
          number,
          {3, 4},
          {0.25},
          {true, false},
          {"a", ""}};
}

KERNEL(refuse_dtype, headers_refuse_dtype) { return {}; }

KERNEL(refuse, headers_refuse) {
  throw std::runtime_error("headers_refuse: argument 'x' h\u00e9las \xe2\x9c\x93");
}

KERNEL(strings, headers_strings) { return {static_cast<int64_t>(a.view.size() + a.text.size())}; }

KERNEL(call_many, headers_call_many) {
  auto [values, indices] =
      cp::call_op<std::tuple<Tensor, Tensor>>("aten::topk", "", a.self, a.k, -1, true, true);
  return {values, indices};
}

KERNEL(call_overload, headers_call_overload) {
  const Tensor out = cp::call_op<Tensor>("aten::empty_like", "", a.a, std::nullopt, std::nullopt,
                                         std::nullopt, std::nullopt, std::nullopt);
  return {cp::call_op<Tensor>("aten::mm", "out", a.a, a.b, out)};
}

KERNEL(call_ours, headers_call_ours) {
  const std::vector<double> halves{0.5};
  return {
      cp::call_op<std::string>("custom_pypto::headers_values", "", a.t, 7, int64_t{8}, 0.5f, true,
                               "lit", cp::ScalarType::Half, cp::Device(cp::DeviceType::CPU)) +
      cp::call_op<std::string>("custom_pypto::headers_optionals", "", a.maybe,
                               std::optional<int64_t>(5), std::nullopt, std::optional<bool>(),
                               std::optional<std::string>("s"),
                               std::optional<cp::ScalarType>(cp::ScalarType::Int), std::nullopt) +
      cp::call_op<std::string>("custom_pypto::headers_optional_lists", "", std::nullopt,
                               std::optional<std::vector<int64_t>>({1, 2}),
                               std::optional<HeaderOnlyArrayRef<double>>(halves), std::nullopt,
                               std::nullopt)};
}

std::string called_lists(const std::vector<Tensor>& tensors) {
  const std::vector<int64_t> ints{1, 2};
  return cp::call_op<std::string>(
      "custom_pypto::headers_lists", "", tensors, HeaderOnlyArrayRef<int64_t>(ints),
      std::vector<double>{0.5}, std::vector<bool>{true, false}, std::vector<std::string>{"s"},
      std::vector<cp::Device>{}, std::vector<std::optional<Tensor>>{std::nullopt, tensors[0]},
      std::vector<std::optional<int64_t>>{});
}

KERNEL(call_lists, headers_call_lists) { return {called_lists({a.t, a.t})}; }

KERNEL(call_with_undefined, headers_call_with_undefined) { return {called_lists({a.t, Tensor()})}; }

KERNEL(call_void, headers_call_void) {
  cp::call_op<void>(std::string(a.op).c_str(), "", a.t);
  return {};
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::headers_values>().impl<&values>("CPU");
  plugin.def<ops::headers_optionals>().impl<&optionals>("CompositeExplicitAutograd");
  plugin.def<ops::headers_lists>().impl<&lists>("CPU");
  plugin.def<ops::headers_optional_lists>().impl<&optional_lists>("CompositeExplicitAutograd");
  plugin.def<ops::headers_many>().impl<&many>("CPU");
  plugin.def<ops::headers_refuse_dtype>().impl<&refuse_dtype>("CPU");
  plugin.def<ops::headers_refuse>().impl<&refuse>("CPU");
  plugin.def<ops::headers_strings>().impl<&strings>("CompositeExplicitAutograd");
  plugin.def<ops::headers_call_many>().impl<&call_many>("CPU");
  plugin.def<ops::headers_call_overload>().impl<&call_overload>("CPU");
  plugin.def<ops::headers_call_ours>().impl<&call_ours>("CPU");
  plugin.def<ops::headers_call_lists>().impl<&call_lists>("CPU");
  plugin.def<ops::headers_call_with_undefined>().impl<&call_with_undefined>("CPU");
  plugin.def<ops::headers_call_void>().impl<&call_void>("CPU");
}
