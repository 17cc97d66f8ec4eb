// The IR of custom ops: the parameters of the simulated kernel that eager calls use. The engine's
// own operators are known by name only.
#include "custom_pypto_simulator/graph.h"
#include "engine.h"

using Names = std::vector<std::pair<ge::AscendString, ge::AscendString>>;

namespace sim = custom_pypto_simulator;

extern "C" CUSTOM_PYPTO_SIM_PUBLIC ge::Status GetRegisteredIrDef(const char* type, Names& inputs,
                                                                 Names& outputs,
                                                                 Names& attributes) {
  const auto is_builtin = CUSTOM_PYPTO_SIM_OF_OPAPI(custom_pypto_sim_is_builtin);
  const sim::Op* op = custom_pypto_sim_find_op(type, false);
  if (op == nullptr && is_builtin != nullptr && is_builtin(type)) return ge::GRAPH_SUCCESS;
  if (op == nullptr) op = custom_pypto_sim_find_op(type, true);
  if (op == nullptr) return ge::GRAPH_FAILED;
  std::vector<sim::Parameter> parameters;
  custom_pypto_sim_parameters(op, &parameters);
  using sim::Role;
  for (const auto& parameter : parameters) {
    const auto add = [&](Names& names, const char* kind) {
      names.emplace_back(parameter.name.c_str(), kind);
    };
    const Role role = parameter.kind.role;
    if (role == Role::input || role == Role::written_input) add(inputs, "required");
    if (role == Role::optional_input) add(inputs, "optional");
    if (role == Role::dynamic_input) add(inputs, "dynamic");
    if (role == Role::output || role == Role::written_input) add(outputs, "required");
    if (role == Role::attribute) add(attributes, parameter.kind.attribute);
  }
  return ge::GRAPH_SUCCESS;
}
