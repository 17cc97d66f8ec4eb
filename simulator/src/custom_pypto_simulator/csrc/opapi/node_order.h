// The order in which the nodes of a graph run.
#pragma once

#include <string>
#include <vector>

#include "custom_pypto_simulator/graph.h"

namespace custom_pypto_simulator {

// Whether an entry of Node::inputs is a control edge: "producer:-1".
bool is_control(const std::string& input);

// A topological order of the nodes that the graph's outputs depend on, by data or control edges,
// without the graph's arguments. Of the nodes that could run next, the last in the model comes
// first, so that a converter that relies on the order in which it made nodes fails. Throws
// std::invalid_argument for a graph without outputs or with a cycle.
std::vector<const Node*> schedule(const Model& model);

}  // namespace custom_pypto_simulator
