// The attributes of a node; an attribute that nobody reads is an error.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "custom_pypto_simulator/graph.h"

namespace custom_pypto_simulator {

class Attributes {
 public:
  explicit Attributes(const Node& node) : node_(node) {}

  // An attribute that the node must have. Throws std::invalid_argument.
  const Attribute& get(const std::string& name);

  // The attribute of this name, or `otherwise`. Throws when it has another type.
  int64_t integer(const std::string& name, int64_t otherwise);
  double real(const std::string& name, double otherwise);
  std::vector<int64_t> integers(const std::string& name, std::vector<int64_t> otherwise);

  // Requires this value if the node has the attribute: others are not emulated.
  void only(const std::string& name, int64_t value);
  void only(const std::string& name, double value);

  // Throws when an attribute was not read, which means that the op does not know it. Attributes of
  // the engine itself, which begin with an underscore, are exempt.
  void refuse_unread() const;

 private:
  const Attribute* find(const std::string& name);

  const Node& node_;
  std::set<std::string> read_;
};

}  // namespace custom_pypto_simulator
