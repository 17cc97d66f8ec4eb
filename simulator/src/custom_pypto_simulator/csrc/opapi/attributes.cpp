// A node's attributes: see attributes.h.
#include "attributes.h"

#include "custom_pypto_simulator/need.h"

namespace custom_pypto_simulator {
namespace {

using Type = Attribute::Type;

void need_type(bool is_right, const Node& node, const std::string& name, const char* wanted) {
  need(is_right, node.type, " has an attribute '", name, "' that is not ", wanted);
}

// `Number` is printed as std::to_string does.
template <class Number>
void need_equal(Number given, Number value, const Node& node, const std::string& name) {
  need(given == value, node.type, " with the attribute '", name, "' = ", std::to_string(given),
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
  refuse(node_.type, " has no attribute '", name, "'");
}

int64_t Attributes::integer(const std::string& name, int64_t otherwise) {
  const Attribute* found = find(name);
  if (found == nullptr) return otherwise;
  const bool is_integer = found->type == Type::integer || found->type == Type::boolean;
  need_type(is_integer, node_, name, "an integer or a bool");
  return found->integer;
}

double Attributes::real(const std::string& name, double otherwise) {
  const Attribute* found = find(name);
  if (found == nullptr) return otherwise;
  need_type(found->type == Type::real, node_, name, "a float");
  return found->real;
}

std::vector<int64_t> Attributes::integers(const std::string& name, std::vector<int64_t> otherwise) {
  const Attribute* found = find(name);
  if (found == nullptr) return otherwise;
  need_type(found->type == Type::list, node_, name, "a list");
  return found->integers;
}

void Attributes::only(const std::string& name, int64_t value) {
  need_equal(integer(name, value), value, node_, name);
}

void Attributes::only(const std::string& name, double value) {
  need_equal(real(name, value), value, node_, name);
}

void Attributes::refuse_unread() const {
  for (const auto& [name, value] : node_.attributes) {
    need(name.compare(0, 1, "_") == 0 || read_.count(name) != 0, node_.type,
         " was given the attribute '", name, "', which is not known of it");
  }
}

}  // namespace custom_pypto_simulator
