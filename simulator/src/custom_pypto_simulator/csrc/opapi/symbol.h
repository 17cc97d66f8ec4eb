// Evaluates the sizes that torchair writes as expressions: "s0", "2*s0", "s0 + 1".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace custom_pypto_simulator {

class Symbols {
 public:
  // Gives the plain symbols in the noted shape of an input the values of its sizes.
  void bind(const std::string& meta, const std::vector<int64_t>& shape);

  // Gives a symbol a value.
  void bind_value(const std::string& meta, int64_t value);

  // The shape in "Tensor(dtype=..., shape=torch.Size([s0, 3])". Throws when it needs a symbol that
  // no input has, or an operation other than + - * // and parentheses.
  std::vector<int64_t> shape(const std::string& meta) const;

 private:
  std::map<std::string, int64_t> values_;
};

}  // namespace custom_pypto_simulator
