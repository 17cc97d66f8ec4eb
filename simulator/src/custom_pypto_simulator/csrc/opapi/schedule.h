// In which order the nodes of a graph run, and which do not run at all.
#pragma once

#include <string>
#include <vector>

#include "custom_pypto_simulator/graph.h"

namespace custom_pypto_simulator {

// Whether an entry of Node::inputs only orders: "producer:-1".
bool is_control(const std::string& input);

// The nodes that the graph's outputs need through data or control edges, each behind what it needs;
// the graph's arguments are not among them. Of those that could run next, the one that stands last
// in the model comes first: the order in which a converter made its nodes promises nothing, so what
// relies on it shows. Throws std::invalid_argument for a graph that nothing can run.
std::vector<const Node*> schedule(const Model& model);

}  // namespace custom_pypto_simulator
