// The order in which the nodes of a graph run: see node_order.h.
#include "node_order.h"

#include <queue>

#include "custom_pypto_simulator/need.h"

namespace custom_pypto_simulator {
namespace {

using Index = size_t;

// The dependencies of each node, as indices into the model's list.
class Edges {
 public:
  explicit Edges(const Model& model) : needs_(model.nodes.size()) {
    std::map<std::string, Index> by_name;
    for (Index i = 0; i < model.nodes.size(); ++i) by_name[model.nodes[i].name] = i;
    for (Index i = 0; i < model.nodes.size(); ++i) {
      for (const auto& input : model.nodes[i].inputs) {
        if (input.empty()) continue;
        const auto found = by_name.find(input.substr(0, input.rfind(':')));
        need(found != by_name.end(), model.nodes[i].name, " uses ", input,
             ", which no node computes");
        needs_[i].push_back(found->second);
      }
    }
  }

  const std::vector<Index>& needed_by(Index node) const { return needs_[node]; }

  // Whether each node is one of `ends`, or needed by one of them.
  std::vector<bool> reaching(std::vector<Index> ends) const {
    std::vector<bool> reached(needs_.size(), false);
    while (!ends.empty()) {
      const Index node = ends.back();
      ends.pop_back();
      if (reached[node]) continue;
      reached[node] = true;
      ends.insert(ends.end(), needs_[node].begin(), needs_[node].end());
    }
    return reached;
  }

 private:
  std::vector<std::vector<Index>> needs_;
};

}  // namespace

bool is_control(const std::string& input) {
  constexpr std::string_view kControl = ":-1";
  return input.size() > kControl.size() &&
         input.compare(input.size() - kControl.size(), kControl.size(), kControl) == 0;
}

std::vector<const Node*> schedule(const Model& model) {
  const auto& nodes = model.nodes;
  std::vector<Index> ends;
  for (Index i = 0; i < nodes.size(); ++i) {
    if (nodes[i].type == "NetOutput") ends.push_back(i);
  }
  need(!ends.empty(), "the graph has no NetOutput");
  const Edges edges(model);
  std::vector<bool> wanted = edges.reaching(ends);
  for (Index i = 0; i < nodes.size(); ++i) {
    if (nodes[i].type == "Data") wanted[i] = false;
  }

  std::vector<std::vector<Index>> users(nodes.size());
  std::vector<size_t> missing(nodes.size(), 0);
  std::priority_queue<Index> ready;
  size_t count = 0;
  for (Index i = 0; i < nodes.size(); ++i) {
    if (!wanted[i]) continue;
    ++count;
    for (const Index each : edges.needed_by(i)) {
      if (!wanted[each]) continue;
      users[each].push_back(i);
      ++missing[i];
    }
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<const Node*> order;
  while (!ready.empty()) {
    const Index node = ready.top();
    ready.pop();
    order.push_back(&nodes[node]);
    for (const Index user : users[node]) {
      if (--missing[user] == 0) ready.push(user);
    }
  }
  need(order.size() == count, "the graph has a cycle");
  return order;
}

}  // namespace custom_pypto_simulator
