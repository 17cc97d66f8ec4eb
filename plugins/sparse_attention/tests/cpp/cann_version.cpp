// Compares each two of some versions of CANN: "<", "=" or ">", "?" for what is no version.
#include "npu/cann_version.h"

#include <cstdio>

using namespace custom_pypto_sparse_attention::npu;

int main(int count, char** texts) {
  for (int i = 1; i < count; ++i) {
    for (int j = 1; j < count; ++j) {
      const auto left = CannVersion::parse(texts[i]);
      const auto right = CannVersion::parse(texts[j]);
      std::putchar(!left || !right ? '?' : *left < *right ? '<' : *right < *left ? '>' : '=');
    }
    std::putchar('\n');
  }
  return cann_version().has_value();  // CANN is not here
}
