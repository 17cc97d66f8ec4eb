// The CPU kernels of paged_write and paged_write_int8, and their registration.
#include <custom_pypto/dtype.h>
#include <custom_pypto/paged_cache.h>
#include <custom_pypto/parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ops.h"

namespace {

using custom_pypto::BFloat16;
using custom_pypto::Half;
using torch::stable::Tensor;

// Fewest elements for a thread.
constexpr int64_t kGrain = 16384;

// Calls write(token, slot) for each token that has a slot.
template <typename Write>
void for_each_slot(const char* op, const Tensor& cache, const Tensor& slots, int64_t row_size,
                   const Write& write) {
  const auto places = custom_pypto::read_slots(
      op, "slots", slots, custom_pypto::cache_of(cache, custom_pypto::CacheUse::written));
  const auto tokens = static_cast<int64_t>(places.size());
  custom_pypto::parallel_for(0, tokens, 1 + kGrain / (row_size + 1), [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      if (places[token] >= 0) write(token, places[token]);
    }
  });
}

// The first element of a head in a cache [blocks, block_size, N, ..].
template <typename T>
T* head_of(T* data, const Tensor& cache, int64_t slot, int64_t head) {
  const int64_t block_size = cache.size(1);
  return data + slot / block_size * cache.stride(0) + slot % block_size * cache.stride(1) +
         head * cache.stride(2);
}

void paged_write_cpu(const ops::paged_write::Arguments& a, const ops::paged_write::Sizes& s,
                     const ops::paged_write::Outputs&) {
  const auto bytes = static_cast<int64_t>(a.rows.element_size());
  const auto* from = static_cast<const char*>(a.rows.const_data_ptr());
  auto* to = static_cast<char*>(a.cache.mutable_data_ptr());
  for_each_slot(ops::paged_write::name, a.cache, a.slots, s.N * s.D, [&](int64_t token, int64_t slot) {
    for (int64_t head = 0; head < s.N; ++head) {
      const int64_t offset = head_of<char>(nullptr, a.cache, slot, head) - static_cast<char*>(nullptr);
      std::memcpy(to + offset * bytes,
                  from + (token * a.rows.stride(0) + head * a.rows.stride(1)) * bytes, s.D * bytes);
    }
  });
}

template <typename T>
void write_int8(const T* row, int64_t size, int8_t* to, float* scale) {
  float largest = 0;
  for (int64_t i = 0; i < size; ++i) largest = std::max(largest, std::abs(static_cast<float>(row[i])));
  *scale = largest / 127;
  for (int64_t i = 0; i < size; ++i) {
    to[i] = largest > 0 ? static_cast<int8_t>(std::nearbyint(static_cast<float>(row[i]) / *scale)) : 0;
  }
}

void paged_write_int8_cpu(const ops::paged_write_int8::Arguments& a,
                          const ops::paged_write_int8::Sizes& s,
                          const ops::paged_write_int8::Outputs&) {
  auto* to = a.cache.mutable_data_ptr<int8_t>();
  auto* scales = a.scales.mutable_data_ptr<float>();
  custom_pypto::visit_dtype<float, Half, BFloat16>(
      ops::paged_write_int8::name, "rows", a.rows.scalar_type(), [&](auto tag) {
        const auto* from = a.rows.const_data_ptr<typename decltype(tag)::type>();
        for_each_slot(ops::paged_write_int8::name, a.cache, a.slots, s.N * s.D,
                      [&](int64_t token, int64_t slot) {
                        for (int64_t head = 0; head < s.N; ++head) {
                          write_int8(from + token * a.rows.stride(0) + head * a.rows.stride(1), s.D,
                                     head_of(to, a.cache, slot, head),
                                     head_of(scales, a.scales, slot, head));
                        }
                      });
      });
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::paged_write>().impl<&paged_write_cpu>("CPU");
  plugin.def<ops::paged_write_int8>().impl<&paged_write_int8_cpu>("CPU");
}
