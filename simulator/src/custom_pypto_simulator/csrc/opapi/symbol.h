// Sizes that torchair wrote as expressions: "s0", "2*s0", "s0 + 1".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace custom_pypto_simulator {

class Symbols {
 public:
  // Learns from what an input of the graph was noted as and what it is: plain symbols get values.
  void bind(const std::string& meta, const std::vector<int64_t>& shape);

  // Learns that a symbol has a value.
  void bind_value(const std::string& meta, int64_t value);

  // The shape in "Tensor(dtype=..., shape=torch.Size([s0, 3])". Throws when it needs a symbol that
  // no input has, or an operation other than + - * // and parentheses.
  std::vector<int64_t> shape(const std::string& meta) const;

 private:
  std::map<std::string, int64_t> values_;
};

}  // namespace custom_pypto_simulator
