// Registrations that are refused, each by its name, and the schema parser, called by ctypes.
#include <custom_pypto/plugin.h>

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

using custom_pypto::Registrar;
using torch::stable::Tensor;

namespace {

Tensor tensor_double(const Tensor& self, double) { return self; }
Tensor tensor_int(const Tensor& self, int64_t) { return self; }
Tensor tensor_bool(const Tensor& self, bool) { return self; }
Tensor tensor_string(const Tensor& self, std::string) { return self; }
Tensor tensor_optional_int(const Tensor& self, std::optional<int64_t>) { return self; }
Tensor tensor_ints(const Tensor& self, std::vector<int64_t>) { return self; }
Tensor tensor_tensor(const Tensor& self, const Tensor&) { return self; }
Tensor tensor_alone(const Tensor& self) { return self; }
void nothing(const Tensor&) {}
std::tuple<Tensor, int64_t> tensor_and_int(const Tensor& self) { return {self, 1}; }

using Body = void (*)(Registrar&);

const std::map<std::string, Body> cases{
    {"int_double",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self, int k) -> Tensor")).impl<&tensor_double>("CPU");
     }},
    {"float_int",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self, float k) -> Tensor")).impl<&tensor_int>("CPU");
     }},
    {"str_bool",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self, str k) -> Tensor")).impl<&tensor_bool>("CPU");
     }},
    {"bool_str",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self, bool k) -> Tensor")).impl<&tensor_string>("CPU");
     }},
    {"optional_missing",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self, Tensor? k) -> Tensor"))
           .impl<&tensor_tensor>("PrivateUse1");
     }},
    {"optional_extra",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self, int k) -> Tensor"))
           .impl<&tensor_optional_int>("CPU");
     }},
    {"tensor_with_default",
     [](Registrar& r) { r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self, Tensor k=None) -> Tensor")); }},
    {"list_missing",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self, int[] k) -> Tensor")).impl<&tensor_int>("CPU");
     }},
    {"list_of_optional",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self, int[]? k) -> Tensor")).impl<&tensor_ints>("CPU");
     }},
    {"scalar",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self, Scalar k) -> Tensor"))
           .impl<&tensor_double>("CPU");
     }},
    {"too_few",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self, int k) -> Tensor")).impl<&tensor_alone>("CPU");
     }},
    {"return_missing",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self) -> Tensor")).impl<&nothing>("CPU");
     }},
    {"return_extra",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self) -> Tensor")).impl<&tensor_and_int>("CPU");
     }},
    {"return_type",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad.out(Tensor self) -> (Tensor, float)"))
           .impl<&tensor_and_int>("CPU");
     }},
    {"aliased_return",
     [](Registrar& r) { r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor(a!) self) -> Tensor(a!)")); }},
    {"namespace",
     [](Registrar& r) { r.def(CUSTOM_PYPTO_SCHEMA("aten::bad(Tensor self) -> Tensor")); }},
    {"unknown_type", [](Registrar& r) { r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensr self) -> Tensor")); }},
    {"dispatch_key",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self) -> Tensor")).impl<&tensor_alone>("Abacus");
     }},
    {"kernel_twice",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self) -> Tensor"))
           .impl<&tensor_alone>("CPU")
           .impl<&tensor_alone>("CPU");
     }},
    {"shared_kernel",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self) -> ()")).impl<&nothing>("CPU");
       r.def(CUSTOM_PYPTO_SCHEMA("bad_too(Tensor self) -> ()")).impl<&nothing>("CPU");
     }},
    {"throws",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self) -> Tensor")).impl<&tensor_alone>("CPU");
       throw std::runtime_error("the author's own reason");
     }},
    {"throws_an_int",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self) -> Tensor")).impl<&tensor_alone>("CPU");
       throw 1;
     }},
    {"none",
     [](Registrar& r) {
       r.def(CUSTOM_PYPTO_SCHEMA("bad(Tensor self) -> Tensor")).impl<&tensor_alone>("CPU");
     }},
    {"wide_text", [](Registrar&) { throw std::runtime_error("\u00e9\u00e9\u00e9"); }},
};

std::string describe(const custom_pypto::Schema& schema) {
  const auto type = [](const custom_pypto::SchemaType& t) {
    return t.name + (t.alias.empty() ? "" : " alias " + t.alias);
  };
  std::string text = schema.name + "|" + schema.overload;
  for (const auto& each : schema.arguments) {
    text += "\n" + each.name + ": " + type(each.type) + (each.keyword_only ? " keyword" : "") +
            (each.has_default ? " = " + each.default_value : "");
  }
  for (const auto& each : schema.returns) text += "\n-> " + type(each.type) + " " + each.name;
  return text;
}

}  // namespace

CUSTOM_PYPTO_EXPORT int try_registration(const char* name, char* error, std::size_t size) {
  custom_pypto::detail::Registration registration;
  const int code = registration.enter(cases.at(name), error, size);
  registration.leave();
  return code;
}

CUSTOM_PYPTO_EXPORT void read_schema(const char* schema, char* text, std::size_t size) {
  try {
    custom_pypto::detail::write_error(text, size, describe(custom_pypto::parse_schema(schema)));
  } catch (const custom_pypto::RegistrationError& error) {
    custom_pypto::detail::write_error(text, size, error.what());
  }
}
