// Finds simulated kernels for the graph engine, in the order in which torch_npu searches.
#include <dlfcn.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "custom_pypto_simulator/abi.h"
#include "custom_pypto_simulator/graph.h"
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

// "std::optional<at::Tensor> bias" -> the type and the name; a parameter may have no name.
Parameter parse_parameter(const std::string& text) {
  size_t end = text.find_last_not_of(" \n\t") + 1;
  size_t begin = end;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  std::string name = text.substr(begin, end - begin);
  std::string type;
  for (const char c : text.substr(0, begin)) {
    if (!std::isspace(static_cast<unsigned char>(c))) type += c;
  }
  static const std::map<std::string, Parameter> known = {
      {"at::Tensor", {Parameter::Role::input, "", ""}},
      {"constaclTensor&", {Parameter::Role::input, "", ""}},
      {"std::optional<at::Tensor>", {Parameter::Role::optional_input, "", ""}},
      {"std::vector<at::Tensor>", {Parameter::Role::dynamic_input, "", ""}},
      {"std::vector<aclTensor>", {Parameter::Role::dynamic_input, "", ""}},
      {"at::Tensor&", {Parameter::Role::output, "", ""}},
      {"int64_t", {Parameter::Role::attribute, "", "VT_INT"}},
      {"int32_t", {Parameter::Role::attribute, "", "VT_INT"}},
      {"int8_t", {Parameter::Role::attribute, "", "VT_INT"}},
      {"uint64_t", {Parameter::Role::attribute, "", "VT_INT"}},
      {"bool", {Parameter::Role::attribute, "", "VT_BOOL"}},
      {"float", {Parameter::Role::attribute, "", "VT_FLOAT"}},
      {"double", {Parameter::Role::attribute, "", "VT_FLOAT"}},
      {"at::Scalar", {Parameter::Role::attribute, "", "VT_FLOAT"}},
      {"at::ScalarType", {Parameter::Role::attribute, "", "VT_DATA_TYPE"}},
      {"std::string", {Parameter::Role::attribute, "", "VT_STRING"}},
      {"std::vector<int64_t>", {Parameter::Role::attribute, "", "VT_LIST_INT"}},
      {"std::vector<float>", {Parameter::Role::attribute, "", "VT_LIST_FLOAT"}},
      {"std::vector<bool>", {Parameter::Role::attribute, "", "VT_LIST_BOOL"}},
  };
  auto found = known.find(type);
  constexpr std::string_view kOptional = "std::optional<";
  if (found == known.end() && type.compare(0, kOptional.size(), kOptional) == 0) {
    found = known.find(type.substr(kOptional.size(), type.size() - kOptional.size() - 1));
  }
  if (found == known.end()) {
    return {Parameter::Role::attribute, name,
            "a type that the graph engine has no attribute for: " + type};
  }
  Parameter parameter = found->second;
  constexpr std::string_view kReference = "Ref";
  if (parameter.role == Parameter::Role::output && name.size() > kReference.size() &&
      name.compare(name.size() - kReference.size(), kReference.size(), kReference) == 0) {
    name.resize(name.size() - kReference.size());
    parameter.role = Parameter::Role::written_input;
  }
  parameter.name = name;
  return parameter;
}

}  // namespace
}  // namespace custom_pypto_simulator

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_EXPORT const sim::Op* custom_pypto_sim_find_op(const char* type) {
  const std::string symbol = std::string("custom_pypto_sim_op_aclnn") + type;
  for (const auto& path : sim::library_paths()) {
    const int mode = path == "libopapi.so" ? RTLD_LAZY | RTLD_NOLOAD : RTLD_LAZY;
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

CUSTOM_PYPTO_SIM_EXPORT void custom_pypto_sim_parameters(const sim::Op* op,
                                                         std::vector<sim::Parameter>* parameters) {
  parameters->clear();
  std::string text;
  int depth = 0;
  for (const char* c = op->parameters; *c != '\0'; ++c) {
    if (*c == '<') ++depth;
    if (*c == '>') --depth;
    if (*c == ',' && depth == 0) {
      parameters->push_back(sim::parse_parameter(text));
      text.clear();
    } else {
      text += *c;
    }
  }
  if (!text.empty()) parameters->push_back(sim::parse_parameter(text));
}
