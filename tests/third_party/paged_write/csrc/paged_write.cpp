// The CPU kernels of paged_write and paged_write_int8, and their registration.
#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto_blocks/paged_cache.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ops.h"

namespace {

using custom_pypto::BFloat16;
using custom_pypto::CacheUse;
using custom_pypto::Half;
using custom_pypto::PaddingSlots;
using custom_pypto::PagedCache;
using torch::stable::Tensor;

// Fewest elements for a thread.
constexpr int64_t kGrain = 16384;

// Calls write(token, slot) for each token that has a slot.
template <typename Write>
void for_each_slot(const char* op, const Tensor& slots, const PagedCache& cache, int64_t row_size,
                   const Write& write) {
  const auto places = custom_pypto::read_slots(op, "slots", slots, cache, PaddingSlots::kept);
  const auto tokens = static_cast<int64_t>(places.size());
  const int64_t grain = 1 + kGrain / (row_size + 1);
  custom_pypto::parallel_for(0, tokens, grain, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      if (places[token] >= 0) write(token, places[token]);
    }
  });
}

void paged_write_cpu(const ops::paged_write::Arguments& a, const ops::paged_write::CallShape& s,
                     const ops::paged_write::Outputs&) {
  const char* op = ops::paged_write::name;
  const auto bytes = static_cast<int64_t>(a.rows.element_size());
  const auto* from = static_cast<const char*>(a.rows.const_data_ptr());
  const auto cache = custom_pypto::heads_of(op, "cache", a.cache, CacheUse::written);
  for_each_slot(op, a.slots, cache, s.N * s.D, [&](int64_t token, int64_t slot) {
    for (int64_t head = 0; head < s.N; ++head) {
      const int64_t offset = token * a.rows.stride(0) + head * a.rows.stride(1);
      std::memcpy(cache.head(slot, head), from + offset * bytes, s.D * bytes);
    }
  });
}

template <typename T>
void write_int8(const T* row, int64_t size, int8_t* to, float* scale) {
  float largest = 0;
  for (int64_t i = 0; i < size; ++i)
    largest = std::max(largest, std::abs(static_cast<float>(row[i])));
  *scale = largest / 127;
  for (int64_t i = 0; i < size; ++i) {
    to[i] =
        largest > 0 ? static_cast<int8_t>(std::nearbyint(static_cast<float>(row[i]) / *scale)) : 0;
  }
}

void paged_write_int8_cpu(const ops::paged_write_int8::Arguments& a,
                          const ops::paged_write_int8::CallShape& s,
                          const ops::paged_write_int8::Outputs&) {
  const char* op = ops::paged_write_int8::name;
  const auto cache = custom_pypto::heads_of(op, "cache", a.cache, CacheUse::written);
  const auto scales = custom_pypto::heads_of(op, "scales", a.scales, CacheUse::written);
  custom_pypto::visit_dtype<float, Half, BFloat16>(op, "rows", a.rows.scalar_type(), [&](auto tag) {
    const auto* rows = a.rows.const_data_ptr<typename decltype(tag)::type>();
    for_each_slot(op, a.slots, cache, s.N * s.D, [&](int64_t token, int64_t slot) {
      for (int64_t head = 0; head < s.N; ++head) {
        char* to = cache.head(slot, head);
        char* scale = scales.head(slot, head);
        write_int8(rows + token * a.rows.stride(0) + head * a.rows.stride(1), s.D,
                   reinterpret_cast<int8_t*>(to), reinterpret_cast<float*>(scale));
      }
    });
  });
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::paged_write>().impl<&paged_write_cpu>("CPU");
  plugin.def<ops::paged_write_int8>().impl<&paged_write_int8_cpu>("CPU");
}
