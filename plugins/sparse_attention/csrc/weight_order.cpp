#include "weight_order.h"

#include <custom_pypto/abi.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace custom_pypto_sparse_attention {
namespace {

constexpr const char* kVariable = "CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS";

enum Order : int { as_variable_says = -1, plain = 0, nz = 1 };

std::atomic<int> declared{as_variable_says};

Order read_variable() {
  const char* value = std::getenv(kVariable);
  const std::string text = value == nullptr ? "" : value;
  if (text == "nz") return nz;
  if (text.empty() || text == "plain") return plain;
  throw std::runtime_error(std::string(kVariable) + "='" + text +
                           "' is no order of weights; set it to nz if 2-D weights hold fractal NZ "
                           "bytes, or to plain, or unset it, if they are plain matrices");
}

}  // namespace

bool weights_are_nz() {
  int order = declared.load(std::memory_order_relaxed);
  if (CUSTOM_PYPTO_UNLIKELY(order == as_variable_says)) {
    const int read = read_variable();
    // Unless somebody has declared one meanwhile, which `order` is then.
    if (declared.compare_exchange_strong(order, read)) order = read;
  }
  return order == nz;
}

const char* plain_weight_warning() {
  static std::atomic<bool> is_given{false};
  if (is_given.load(std::memory_order_relaxed) || is_given.exchange(true)) return nullptr;
  return "npu_sparse_attention_pto: aclnnSparseAttentionPto reads weights in fractal NZ order, and "
         "plain ones are brought into it in each call; do it once, with "
         "custom_pypto_sparse_attention.to_nz(weight), and give what that returns";
}

}  // namespace custom_pypto_sparse_attention

// For weight_order.py: "nz", "plain", or what is wrong with the variable.
CUSTOM_PYPTO_EXPORT const char* custom_pypto_sparse_attention_weight_order() noexcept {
  static thread_local std::string problem;
  try {
    return custom_pypto_sparse_attention::weights_are_nz() ? "nz" : "plain";
  } catch (const std::runtime_error& error) {
    problem = error.what();
    return problem.c_str();
  }
}

// Declares an order (1 nz, 0 plain, -1 what the variable says), and returns the one before.
CUSTOM_PYPTO_EXPORT int custom_pypto_sparse_attention_declare(int order) noexcept {
  return custom_pypto_sparse_attention::declared.exchange(order);
}

CUSTOM_PYPTO_EXPORT const char* custom_pypto_sparse_attention_plain_weight_warning() noexcept {
  return custom_pypto_sparse_attention::plain_weight_warning();
}
