// Every C++ type that a kernel takes or returns, and calls of other ops.
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/plugin.h>

#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace cp = custom_pypto;
using torch::headeronly::HeaderOnlyArrayRef;
using torch::stable::Tensor;

namespace {

template <typename... Values>
std::string show(const Values&... values) {
  std::ostringstream out;
  ((cp::detail::print(out, values), out << ' '), ...);
  return out.str();
}

std::string values(Tensor tensor, int64_t i, double f, bool b, const std::string& s,
                   std::string_view view, cp::ScalarType dtype, cp::Device device) {
  return show(tensor, i, f, b, s, view, dtype, device);
}

std::string optionals(const std::optional<Tensor>& tensor, std::optional<int64_t> i,
                      std::optional<double> f, std::optional<bool> b, std::optional<std::string> s,
                      std::optional<std::string_view> view, std::optional<cp::ScalarType> dtype,
                      std::optional<cp::Device> device,
                      const std::optional<HeaderOnlyArrayRef<int64_t>>& list) {
  return show(tensor, i, f, b, s, view, dtype, device, list);
}

std::string lists(const std::vector<Tensor>& tensors, std::vector<int64_t> i, std::vector<double> f,
                  const std::vector<bool>& b, const std::vector<std::optional<Tensor>>& optionals) {
  return show(tensors, i, f, b, optionals);
}

std::string views(HeaderOnlyArrayRef<Tensor> tensors, const HeaderOnlyArrayRef<int64_t>& i,
                  HeaderOnlyArrayRef<double> f, HeaderOnlyArrayRef<bool> b) noexcept {
  return show(tensors, i, f, b);
}

std::tuple<Tensor, std::vector<Tensor>, int64_t, double, bool, std::optional<Tensor>,
           std::vector<int64_t>>
many(const Tensor& self, bool some) {
  return {self,  {self, self}, int64_t{1} << 40,
          0.5,   true,         some ? std::optional<Tensor>(self) : std::nullopt,
          {3, 4}};
}

std::tuple<Tensor> single(const Tensor& self) { return {self}; }

void refuse_dtype(const Tensor&, cp::ScalarType, const Tensor&, const std::vector<Tensor>&,
                  const std::optional<Tensor>&, std::string_view) {}

Tensor refuse(const Tensor&, const std::vector<Tensor>&, const std::optional<Tensor>&) {
  throw std::runtime_error("headers_refuse: argument 'x' h\u00e9las \xe2\x9c\x93");
}

int64_t take_strings(std::string_view view, const std::string& text) {
  return static_cast<int64_t>(view.size() + text.size());
}

std::tuple<Tensor, Tensor> call_many(const Tensor& self, int64_t k) {
  return cp::call_op<std::tuple<Tensor, Tensor>>("aten::topk", "", self, k, -1, true, true);
}

Tensor call_overload(const Tensor& a, const Tensor& b) {
  Tensor out = cp::call_op<Tensor>("aten::empty_like", "", a, std::nullopt, std::nullopt,
                                   std::nullopt, std::nullopt, std::nullopt);
  return cp::call_op<Tensor>("aten::mm", "out", a, b, out);
}

std::string call_ours(const Tensor& tensor, const std::optional<Tensor>& maybe) {
  return cp::call_op<std::string>("custom_pypto::headers_values", "", tensor, 7, 0.5f, true, "lit",
                                  std::string("text"), cp::ScalarType::Half,
                                  cp::Device(cp::DeviceType::CPU)) +
         cp::call_op<std::string>("custom_pypto::headers_optionals", "", maybe,
                                  std::optional<int64_t>(5), std::nullopt, std::optional<bool>(),
                                  std::optional<std::string>("s"), std::nullopt,
                                  std::optional<cp::ScalarType>(cp::ScalarType::Int), std::nullopt,
                                  std::optional<std::vector<int64_t>>({1, 2}));
}

std::string call_lists(const Tensor& tensor) {
  const std::vector<int64_t> ints{1, 2};
  return cp::call_op<std::string>(
      "custom_pypto::headers_lists", "", std::vector<Tensor>{tensor, tensor},
      HeaderOnlyArrayRef<int64_t>(ints), std::vector<double>{0.5}, std::vector<bool>{true, false},
      std::vector<std::optional<Tensor>>{std::nullopt, tensor});
}

std::string call_with_undefined(const Tensor& tensor) {
  const std::vector<int64_t> ints{1, 2};
  return cp::call_op<std::string>("custom_pypto::headers_lists", "",
                                  std::vector<Tensor>{tensor, Tensor()},
                                  HeaderOnlyArrayRef<int64_t>(ints), std::vector<double>{},
                                  std::vector<bool>{}, std::vector<std::optional<Tensor>>{});
}

void call_void(const Tensor& self, std::string_view op) {
  cp::call_op<void>(std::string(op).c_str(), "", self);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin
      .def(CUSTOM_PYPTO_SCHEMA("headers_values(Tensor t, int i, float f, bool b, str s, str v, *, "
                               "ScalarType dtype, Device device) -> str"))
      .impl<&values>("CPU");
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "headers_optionals(Tensor? t=None, int? i=None, float? f=None, bool? b=None, "
          "str? s=None, str? v=None, ScalarType? dtype=None, Device? device=None, "
          "int[]? list=None) -> str"))
      .impl<&optionals>("CompositeExplicitAutograd");
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "headers_lists(Tensor[] t, SymInt[2] i, float[] f, bool[] b, Tensor?[] o) -> str"))
      .impl<&lists>("CPU");
  plugin
      .def(CUSTOM_PYPTO_SCHEMA("headers_views(Tensor[] t, SymInt[] i, float[] f, bool[] b) -> str"))
      .impl<&views>("CPU");
  plugin
      .def(CUSTOM_PYPTO_SCHEMA("headers_many(Tensor self, bool some) -> (Tensor, Tensor[], int, "
                               "float, bool, Tensor?, int[])"))
      .impl<&many>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_single(Tensor self) -> Tensor")).impl<&single>("CPU");
  plugin
      .def(CUSTOM_PYPTO_SCHEMA("headers_refuse_dtype(Tensor a, ScalarType dtype, Tensor b, "
                               "Tensor[] c, Tensor? d, str e) -> ()"))
      .impl<&refuse_dtype>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_refuse(Tensor x, Tensor[] y, Tensor? z) -> Tensor"))
      .impl<&refuse>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_strings(str view, str text) -> int"))
      .impl<&take_strings>("CompositeExplicitAutograd");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_call_many(Tensor self, int k) -> (Tensor, Tensor)"))
      .impl<&call_many>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_call_overload(Tensor a, Tensor b) -> Tensor"))
      .impl<&call_overload>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_call_ours(Tensor t, Tensor? maybe) -> str"))
      .impl<&call_ours>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_call_lists(Tensor t) -> str")).impl<&call_lists>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_call_with_undefined(Tensor t) -> str"))
      .impl<&call_with_undefined>("CPU");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_call_void(Tensor t, str op) -> ()"))
      .impl<&call_void>("CPU");
}
