// Finds simulated kernels for the graph engine, in the order in which torch_npu searches.
#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "custom_pypto_simulator/abi.h"
#include "custom_pypto_simulator/graph.h"
#include "custom_pypto_simulator/need.h"
#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> library_paths() {
  constexpr char kLibrary[] = "/op_api/lib/libcust_opapi.so";
  std::vector<std::string> paths;
  for (const auto& entry : split(variable("ASCEND_CUSTOM_OPP_PATH"), ':')) {
    paths.push_back(entry + kLibrary);
  }
  const std::string vendors = variable("ASCEND_OPP_PATH") + "/vendors/";
  std::ifstream config(vendors + "config.ini");
  std::string line;
  constexpr std::string_view kKey = "load_priority=";
  if (std::getline(config, line) && line.compare(0, kKey.size(), kKey) == 0) {
    for (const auto& vendor : split(line.substr(kKey.size()), ',')) {
      paths.push_back(vendors + vendor + kLibrary);
    }
  }
  paths.push_back("libopapi.so");
  return paths;
}

// "at::Tensor& cacheRef" -> "cacheRef"
std::string last_word(std::string text) {
  text.erase(text.find_last_not_of(" \n\t") + 1);
  const auto is_word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return {std::find_if_not(text.rbegin(), text.rend(), is_word).base(), text.end()};
}

Parameter parameter_of(ParameterKind kind, std::string name) {
  constexpr std::string_view kReference = "Ref";
  const auto end = name.size() - std::min(name.size(), kReference.size());
  if (kind.role == Role::output && end != 0 && name.substr(end) == kReference) {
    name.resize(end);
    kind.role = Role::written_input;
  }
  return {kind, name};
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT const sim::Op* custom_pypto_sim_find_op(const char* type, bool is_stock) {
  const std::string symbol = std::string("custom_pypto_sim_op_aclnn") + type;
  for (const auto& path : sim::library_paths()) {
    const bool is_simulators = path == "libopapi.so";
    if (is_simulators && !is_stock) continue;
    const int mode = is_simulators ? RTLD_LAZY | RTLD_NOLOAD : RTLD_LAZY;
    void* library = dlopen(path.c_str(), mode);
    if (library == nullptr) continue;
    const auto* op = static_cast<const sim::Op*>(dlsym(library, symbol.c_str()));
    if (op == nullptr) continue;
    const std::string name = std::string("aclnn") + type;
    if (custom_pypto_sim_check_abi(op->abi, name.c_str()) != ACL_SUCCESS) {
      throw std::runtime_error(aclGetRecentErrMsg());
    }
    return op;
  }
  return nullptr;
}

CUSTOM_PYPTO_SIM_EXPORT const sim::Op* custom_pypto_sim_require_op(const char* type) {
  const sim::Op* op = custom_pypto_sim_find_op(type, true);
  sim::need(op != nullptr, "the graph engine's operator '", type,
            "' is not emulated, and no simulated kernel aclnn", type,
            " was found. Add it to custom_pypto_simulator/csrc/opapi, or to a library of simulated "
            "kernels that ASCEND_CUSTOM_OPP_PATH names");
  return op;
}

CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_parameters(const sim::Op* op,
                                                         std::vector<sim::Parameter>* parameters) {
  parameters->clear();
  std::string text;
  int depth = 0;
  for (const char* c = op->parameters; parameters->size() != op->count; ++c) {
    if (*c == '<') ++depth;
    if (*c == '>') --depth;
    if (*c == '\0' || (*c == ',' && depth == 0)) {
      const sim::ParameterKind kind = op->kinds[parameters->size()];
      parameters->push_back(sim::parameter_of(kind, sim::last_word(text)));
      text.clear();
      if (*c == '\0') break;
    } else {
      text += *c;
    }
  }
}
