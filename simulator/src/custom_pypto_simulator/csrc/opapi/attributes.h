// The attributes of a node, read so that none is passed over.
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

  // What the node has by this name, or `otherwise`. Throws when it has something of another type.
  int64_t integer(const std::string& name, int64_t otherwise);
  double real(const std::string& name, double otherwise);
  std::vector<int64_t> integers(const std::string& name, std::vector<int64_t> otherwise);

  // An attribute that has this value where the node has it: another one is not emulated.
  void only(const std::string& name, int64_t value);
  void only(const std::string& name, double value);

  // Throws when the node has an attribute, other than the engine's own with their underscore, that
  // has not been read: what computes the node does not know it.
  void refuse_unread() const;

 private:
  const Attribute* find(const std::string& name);

  const Node& node_;
  std::set<std::string> read_;
};

}  // namespace custom_pypto_simulator
