// Registrations that are refused, each by its name, called by ctypes.
#include <map>
#include <stdexcept>
#include <string>

#include "ops.h"

using custom_pypto::Registrar;

namespace {

ops::bad::Outputs same(const ops::bad::Arguments& a, const ops::bad::CallShape&) {
  return {a.self};
}

using Body = void (*)(Registrar&);

const std::map<std::string, Body> cases{
    {"none", [](Registrar& r) { r.def<ops::bad>().impl<&same>("CPU"); }},
    {"dispatch_key", [](Registrar& r) { r.def<ops::bad>().impl<&same>("Abacus"); }},
    {"op_twice",
     [](Registrar& r) {
       r.def<ops::bad>();
       r.def<ops::bad>();
     }},
    // Of an op that another plugin has, after one of its own.
    {"duplicate",
     [](Registrar& r) {
       r.def<ops::bad>().impl<&same>("CPU");
       r.def<ops::headers_length>();
     }},
    {"kernel_twice", [](Registrar& r) { r.def<ops::bad>().impl<&same>("CPU").impl<&same>("CPU"); }},
    {"throws",
     [](Registrar& r) {
       r.def<ops::bad>().impl<&same>("CPU");
       throw std::runtime_error("the author's own reason");
     }},
    {"throws_an_int",
     [](Registrar& r) {
       r.def<ops::bad>().impl<&same>("CPU");
       throw 1;
     }},
    {"wide_text", [](Registrar&) { throw std::runtime_error("\u00e9\u00e9\u00e9"); }},
};

}  // namespace

CUSTOM_PYPTO_EXPORT int try_registration(const char* name, char* error, std::size_t size) {
  custom_pypto::detail::Registration registration;
  const int code = registration.enter(cases.at(name), error, size);
  registration.leave();
  return code;
}
