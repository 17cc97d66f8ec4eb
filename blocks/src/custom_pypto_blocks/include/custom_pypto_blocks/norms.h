// Norms of single rows, in fp32, rounded once to T. Sums are taken in an order that depends on the
// row's length alone.
#pragma once

#include <custom_pypto/abi.h>

#include <cmath>
#include <cstdint>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// The sum of value(i) over i < count, in lanes that a compiler can keep in a vector.
template <class Value>
inline float sum_of(int64_t count, const Value& value) {
  constexpr int64_t kLanes = 16;
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += value(i + lane);
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) lanes[lane] += value(i);
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

}  // namespace detail

// out = x / sqrt(mean(x^2) + epsilon) * gamma
template <class T>
void rms_norm(const T* x, int64_t count, const float* gamma, float epsilon, T* out) {
  const float sum = detail::sum_of(count, [x](int64_t i) {
    const float value = static_cast<float>(x[i]);
    return value * value;
  });
  const float root = std::sqrt(sum / static_cast<float>(count) + epsilon);
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<T>(static_cast<float>(x[i]) / root * gamma[i]);
  }
}

// out = (x - mean(x)) / sqrt(variance(x) + epsilon) * gamma + beta
template <class T>
void layer_norm(const float* x, int64_t count, const float* gamma, const float* beta, float epsilon,
                T* out) {
  const float size = static_cast<float>(count);
  const float mean = detail::sum_of(count, [x](int64_t i) { return x[i]; }) / size;
  const float square =
      detail::sum_of(count, [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  const float root = std::sqrt(square / size + epsilon);
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<T>((x[i] - mean) / root * gamma[i] + beta[i]);
  }
}

CUSTOM_PYPTO_NAMESPACE_END
