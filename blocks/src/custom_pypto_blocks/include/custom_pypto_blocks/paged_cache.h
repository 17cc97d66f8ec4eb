// A paged cache that a CPU kernel reads or writes, and the slots to which tokens are written.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/paging.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// A cache [blocks, block_size, ..] of rows, [..]. Strides in bytes.
struct PagedCache {
  char* data;
  int64_t blocks;
  int64_t block_size;
  int64_t block_stride;
  int64_t token_stride;
  int64_t head_stride = 0;  // of a cache of heads_of

  int64_t slots() const { return blocks * block_size; }
  char* row(int64_t block, int64_t token) const {
    return data + block * block_stride + token * token_stride;
  }
  char* row(int64_t slot) const { return row(slot / block_size, slot % block_size); }
  char* head(int64_t slot, int64_t head) const { return row(slot) + head * head_stride; }
};

enum class CacheUse { read, written };

namespace detail {

// With `heads`, only what is behind dimension 2 must be contiguous.
inline PagedCache paged_cache(const char* op, const char* name, const Tensor& cache, CacheUse use,
                              bool heads) {
  int64_t stride = 1;
  for (int64_t dim = cache.dim(); --dim > (heads ? 2 : 1); stride *= cache.size(dim)) {
    check(cache.numel() == 0 || cache.size(dim) == 1 || cache.stride(dim) == stride, op, name,
          "must have contiguous ", heads ? "heads" : "rows", ", but dimension ", dim,
          " has stride ", cache.stride(dim), " instead of ", stride, "; pass its contiguous()");
  }
  const auto bytes = static_cast<int64_t>(cache.element_size());
  // Asking for mutable memory gives a lazily cloned tensor its own; the original keeps its numbers.
  void* data = use == CacheUse::written ? cache.mutable_data_ptr()
                                        : const_cast<void*>(cache.const_data_ptr());
  return {static_cast<char*>(data), cache.size(0),           cache.size(1),
          cache.stride(0) * bytes,  cache.stride(1) * bytes, heads ? cache.stride(2) * bytes : 0};
}

}  // namespace detail

// From a tensor [blocks, block_size, ..] with contiguous rows, [..]. Throws std::runtime_error that
// begins with `op` and names the argument `name`.
inline PagedCache cache_of(const char* op, const char* name, const Tensor& cache, CacheUse use) {
  return detail::paged_cache(op, name, cache, use, false);
}

// From a tensor [blocks, block_size, heads, ..] whose heads, [..], are contiguous and any distance
// apart. Throws as `cache_of` does.
inline PagedCache heads_of(const char* op, const char* name, const Tensor& cache, CacheUse use) {
  return detail::paged_cache(op, name, cache, use, true);
}

// The slot -1 of a token: an error, or a token that the op does not write, as vLLM pads.
enum class PaddingSlots { refused, kept };

// The slot of each token, checked against the cache's size. Throws as `cache_of` does.
inline std::vector<int64_t> read_slots(const char* op, const char* name, const Tensor& slots,
                                       const PagedCache& cache,
                                       PaddingSlots padding = PaddingSlots::refused) {
  const bool keeps = padding == PaddingSlots::kept;
  const Tensor source = to_contiguous(slots);
  const Integers values(source);
  std::vector<int64_t> result(static_cast<std::size_t>(slots.numel()));
  for (std::size_t token = 0; token < result.size(); ++token) {
    const int64_t slot = values[static_cast<int64_t>(token)];
    check(slot >= (keeps ? -1 : 0) && slot < cache.slots(), op, name, "must hold slots from 0 to ",
          cache.slots() - 1, " (", cache.blocks, " blocks of ", cache.block_size, ")",
          keeps ? " or -1 for padding" : "", ", got ", slot, " for token ", token);
    result[token] = slot;
  }
  return result;
}

CUSTOM_PYPTO_NAMESPACE_END
