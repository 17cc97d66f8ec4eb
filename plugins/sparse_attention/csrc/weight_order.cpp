// The order of the bytes of weights; reads the environment variable that declares it.
#include "weight_order.h"

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/storage_format.h>
#include <custom_pypto/printable.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace custom_pypto_sparse_attention {
namespace {

constexpr const char* kVariable = "CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS";
// How users declare that 2-D weights hold fractal NZ bytes.
constexpr const char* kDeclaration =
    "CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS=nz or declare_nz_weights()";

enum Order : int { as_variable_says = -1, plain = 0, nz = 1 };

std::atomic<int> declared{as_variable_says};

Order read_variable() {
  const char* value = std::getenv(kVariable);
  const std::string text = value == nullptr ? "" : value;
  if (text == "nz") return nz;
  if (text.empty() || text == "plain") return plain;
  throw std::runtime_error(std::string(kVariable) + "='" + custom_pypto::printable(text) +
                           "' is no order of weights; set it to nz if 2-D weights hold fractal NZ "
                           "bytes, or to plain, or unset it, if they are plain matrices");
}

}  // namespace

bool weights_are_nz() {
  int order = declared.load(std::memory_order_relaxed);
  if (CUSTOM_PYPTO_UNLIKELY(order == as_variable_says)) {
    const int read = read_variable();
    // If another thread has declared an order meanwhile, `order` becomes that.
    if (declared.compare_exchange_strong(order, read)) order = read;
  }
  return order == nz;
}

bool is_declared_nz(const Tensor& weight) {
  return weight.dim() == 2 && weights_are_nz() && !custom_pypto::npu::is_fractal_nz(weight);
}

Weight weight_of(const Tensor& weight) {
  const void* data = weight.const_data_ptr();
  if (weight.dim() == 3) {
    return {data,
            weight.size(1),
            weight.size(0) * kTileColumns,
            weight.stride(1),
            weight.stride(2),
            kTileColumns,
            weight.stride(0)};
  }
  const int64_t depth = weight.size(0);
  const int64_t columns = weight.size(1);
  if (CUSTOM_PYPTO_UNLIKELY(is_declared_nz(weight))) {
    return {data, depth, columns, kTileColumns, 1, kTileColumns, depth * kTileColumns};
  }
  return weight_of_matrix(weight);
}

void check_declared(const char* op,
                    const std::array<std::pair<const char*, const Tensor&>, 3>& weights) {
  for (const auto& [name, weight] : weights) {
    if (!is_declared_nz(weight)) continue;
    const auto need = [&, name = name, &weight = weight](bool holds, const char* what) {
      check(holds, op, name, "must ", what, " where 2-D weights are declared to hold fractal NZ ",
            "bytes (", kDeclaration, "), got ", weight, " with strides ", weight.strides(),
            "; take the declaration back if this is a plain matrix");
    };
    need(weight.scalar_type() != ScalarType::Float, "be bfloat16 or float16");
    need(weight.size(1) % kTileColumns == 0, "have a multiple of 16 columns");
    need(weight.is_contiguous(), "be contiguous");
  }
}

const char* take_plain_weight_warning() {
  static std::atomic<bool> is_given{false};
  if (is_given.load(std::memory_order_relaxed) || is_given.exchange(true)) return nullptr;
  return "npu_sparse_attention_pto: aclnnSparseAttentionPto reads weights in fractal NZ order, and "
         "plain ones are brought into it in each call; do it once, with "
         "custom_pypto_sparse_attention.to_nz(weight), and give what that returns";
}

}  // namespace custom_pypto_sparse_attention

// For weight_order.py: "nz", "plain", or why the variable's value is wrong.
CUSTOM_PYPTO_EXPORT const char* custom_pypto_sparse_attention_weight_order() noexcept {
  static thread_local std::string problem;
  try {
    return custom_pypto_sparse_attention::weights_are_nz() ? "nz" : "plain";
  } catch (const std::runtime_error& error) {
    problem = error.what();
    return problem.c_str();
  }
}

// Declares an order (1 nz, 0 plain, -1 as the variable says), and returns the previous one.
CUSTOM_PYPTO_EXPORT int custom_pypto_sparse_attention_declare(int order) noexcept {
  return custom_pypto_sparse_attention::declared.exchange(order);
}

CUSTOM_PYPTO_EXPORT const char* custom_pypto_sparse_attention_plain_weight_warning() noexcept {
  return custom_pypto_sparse_attention::take_plain_weight_warning();
}
