// Graph: keeps a graph as torchair serialised it.
#include <fstream>

#include "engine.h"

namespace ge {

class GraphImpl {
 public:
  std::string bytes;
};

// A friend of Graph that reads its bytes.
class GraphUtils {
 public:
  static const std::string& bytes(const Graph& graph) { return graph.impl_->bytes; }
};

const std::string& bytes_of(const Graph& graph) { return GraphUtils::bytes(graph); }

Graph::Graph(const char_t*) : impl_(std::make_shared<GraphImpl>()) {}

graphStatus Graph::LoadFromSerializedModelArray(const void* bytes, size_t size) {
  impl_ = std::make_shared<GraphImpl>();
  impl_->bytes.assign(static_cast<const char*>(bytes), size);
  return GRAPH_SUCCESS;
}

graphStatus Graph::CopyFrom(const Graph& other) {
  impl_ = std::make_shared<GraphImpl>(*other.impl_);
  return GRAPH_SUCCESS;
}

graphStatus Graph::SaveToFile(const char_t* path) const {
  std::ofstream file(path, std::ios::binary);
  file << impl_->bytes;
  return file ? GRAPH_SUCCESS : GRAPH_FAILED;
}

// torchair calls these for graphs that it tunes or checks; there are no node objects here.
std::vector<GNode> Graph::GetAllNodes() const { return {}; }
graphStatus GNode::GetType(AscendString&) const { return GRAPH_FAILED; }

// Built-in operators have no IR here, so torchair does not check calls against it.
class OperatorImpl {};
bool OperatorFactory::IsExistOp(const char_t* const) { return false; }
Operator OperatorFactory::CreateOperator(const char_t* const, const char_t* const) {
  return Operator();
}
graphStatus Operator::UpdateInputDesc(const char_t*, const TensorDesc&) { return GRAPH_FAILED; }
graphStatus Operator::GetAllIrAttrNamesAndTypes(std::map<AscendString, AscendString>&) const {
  return GRAPH_FAILED;
}

}  // namespace ge
