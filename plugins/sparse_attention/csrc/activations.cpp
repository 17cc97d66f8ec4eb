// Number of tokens.
#include "activations.h"

namespace custom_pypto_sparse_attention {

int64_t token_count(const custom_pypto::Span& tokens) {
  int64_t count = 1;
  for (const int64_t size : tokens) count *= size;
  return count;
}

}  // namespace custom_pypto_sparse_attention
