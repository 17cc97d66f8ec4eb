// The IR of custom ops: the parameters of the simulated kernel that eager calls use. The engine's
// own operators are known by name only.
#include <dlfcn.h>

#include "custom_pypto_simulator/graph.h"
#include "engine.h"

using Names = std::vector<std::pair<ge::AscendString, ge::AscendString>>;

namespace sim = custom_pypto_simulator;

namespace {

bool is_builtin(const char* type) {
  void* library = dlopen("libopapi.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  using IsBuiltin = decltype(&custom_pypto_sim_is_builtin);
  const auto query = reinterpret_cast<IsBuiltin>(dlsym(library, "custom_pypto_sim_is_builtin"));
  return query != nullptr && query(type);
}

}  // namespace

extern "C" CUSTOM_PYPTO_SIM_PUBLIC ge::Status GetRegisteredIrDef(const char* type, Names& inputs,
                                                                 Names& outputs,
                                                                 Names& attributes) {
  if (is_builtin(type)) return ge::GRAPH_SUCCESS;
  const sim::Op* op = custom_pypto_sim_find_op(type);
  if (op == nullptr) return ge::GRAPH_FAILED;
  std::vector<sim::Parameter> parameters;
  custom_pypto_sim_parameters(op, &parameters);
  using Role = sim::Parameter::Role;
  for (const auto& parameter : parameters) {
    const auto add = [&](Names& names, const char* kind) {
      names.emplace_back(parameter.name.c_str(), kind);
    };
    switch (parameter.role) {
      case Role::input:
        add(inputs, "required");
        break;
      case Role::optional_input:
        add(inputs, "optional");
        break;
      case Role::dynamic_input:
        add(inputs, "dynamic");
        break;
      case Role::output:
        add(outputs, "required");
        break;
      case Role::written_input:
        add(inputs, "required");
        add(outputs, "required");
        break;
      case Role::attribute:
        add(attributes, parameter.type.c_str());
        break;
    }
  }
  return ge::GRAPH_SUCCESS;
}
