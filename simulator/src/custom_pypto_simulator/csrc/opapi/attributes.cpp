// A node's attributes: see attributes.h.
#include "attributes.h"

#include <stdexcept>

namespace custom_pypto_simulator {
namespace {

using Type = Attribute::Type;

[[noreturn]] void fail_type(const Node& node, const std::string& name, const char* wanted) {
  throw std::invalid_argument(node.type + " has an attribute '" + name + "' that is not " + wanted);
}

[[noreturn]] void fail_value(const Node& node, const std::string& name, const std::string& value) {
  throw std::invalid_argument(node.type + " with the attribute '" + name + "' = " + value +
                              " is not emulated");
}

}  // namespace

const Attribute* Attributes::find(const std::string& name) {
  read_.insert(name);
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? nullptr : &found->second;
}

const Attribute& Attributes::get(const std::string& name) {
  if (const Attribute* found = find(name)) return *found;
  throw std::invalid_argument(node_.type + " has no attribute '" + name + "'");
}

int64_t Attributes::integer(const std::string& name, int64_t otherwise) {
  const Attribute* found = find(name);
  if (found == nullptr) return otherwise;
  if (found->type != Type::integer && found->type != Type::boolean) {
    fail_type(node_, name, "an integer or a bool");
  }
  return found->integer;
}

double Attributes::real(const std::string& name, double otherwise) {
  const Attribute* found = find(name);
  if (found == nullptr) return otherwise;
  if (found->type != Type::real) fail_type(node_, name, "a float");
  return found->real;
}

std::vector<int64_t> Attributes::integers(const std::string& name, std::vector<int64_t> otherwise) {
  const Attribute* found = find(name);
  if (found == nullptr) return otherwise;
  if (found->type != Type::list) fail_type(node_, name, "a list");
  return found->integers;
}

void Attributes::only(const std::string& name, int64_t value) {
  const int64_t given = integer(name, value);
  if (given != value) fail_value(node_, name, std::to_string(given));
}

void Attributes::only(const std::string& name, double value) {
  const double given = real(name, value);
  if (given != value) fail_value(node_, name, std::to_string(given));
}

void Attributes::refuse_unread() const {
  for (const auto& [name, value] : node_.attributes) {
    if (name.compare(0, 1, "_") == 0 || read_.count(name) != 0) continue;
    throw std::invalid_argument(node_.type + " was given the attribute '" + name +
                                "', which is not known of it");
  }
}

}  // namespace custom_pypto_simulator
