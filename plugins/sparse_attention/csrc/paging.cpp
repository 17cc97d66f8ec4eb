#include "paging.h"

#include "activations.h"

namespace custom_pypto_sparse_attention {

Integers::Integers(const Arg& argument)
    : tensor_(dense(argument.dtype({ScalarType::Int, ScalarType::Long}).tensor())),
      data_(tensor_.const_data_ptr()),
      wide_(tensor_.scalar_type() == ScalarType::Long) {}

Cache check_cache(const Arg& cache, const Arg& x, int64_t size, const char* meaning, CacheUse use) {
  cache.rank(4).same_dtype(x).same_device(x);
  cache.size(2, 1, "one key head").size(3, size, meaning);
  const Tensor& tensor = cache.tensor();
  check(tensor.size(1) >= 1, cache.op(), cache.name(),
        "must have a positive block size in dimension 1, got ", tensor.sizes());
  check(size == 1 || tensor.stride(3) == 1, cache.op(), cache.name(),
        "must be contiguous in its last dimension, got shape ", tensor.sizes(), " with strides ",
        tensor.strides(), "; a contiguous copy would not be updated in place");
  const int64_t bytes = bytes_of(element_of(tensor.scalar_type()));
  // Asking for mutable memory gives a lazily cloned tensor its own; the original keeps its numbers.
  void* data = use == CacheUse::written ? tensor.mutable_data_ptr()
                                        : const_cast<void*>(tensor.const_data_ptr());
  return {static_cast<char*>(data), tensor.size(0), tensor.size(1), tensor.stride(0) * bytes,
          tensor.stride(1) * bytes};
}

void check_same_blocks(const Arg& cache, const Arg& other) {
  for (int64_t dim = 0; dim < 2; ++dim) {
    check(cache.tensor().size(dim) == other.tensor().size(dim), cache.op(), cache.name(),
          "must have as many blocks, as large, as '", other.name(), "' ", other.tensor().sizes(),
          ", got ", cache.tensor().sizes());
  }
}

void check_slots(const Arg& cache_index, const Arg& x) {
  check_like_tokens(cache_index, x, -1, "");
  cache_index.dtype({ScalarType::Int, ScalarType::Long});
}

std::vector<int64_t> read_slots(const Arg& cache_index, const Arg& x, const Cache& cache) {
  const Integers values(cache_index);
  std::vector<int64_t> slots(static_cast<std::size_t>(token_count(x.tensor())));
  for (std::size_t token = 0; token < slots.size(); ++token) {
    const int64_t slot = values[static_cast<int64_t>(token)];
    check(slot >= 0 && slot < cache.slots(), cache_index.op(), cache_index.name(),
          "must hold slots from 0 to ", cache.slots() - 1, " (", cache.blocks, " blocks of ",
          cache.block_size, "), got ", slot, " for token ", token);
    slots[token] = slot;
  }
  return slots;
}

BlockTable::BlockTable(const Arg& argument, const Arg& x, int64_t sequences)
    : op(argument.op()),
      name(argument.name()),
      width(argument.rank(2)
                .same_device(x)
                .size(0, sequences, "the number of sequences")
                .tensor()
                .size(1)),
      values(argument) {}

void BlockTable::fail_block(int64_t sequence, int64_t index, int64_t blocks) const {
  fail(op, name, "must hold a block from 0 to ", blocks - 1, " at [", sequence, ", ", index,
       "], which is needed, got ", block(sequence, index));
}

std::vector<int64_t> read_lengths(const Arg& lengths, const Arg& x, int64_t sequences,
                                  const BlockTable& table, int64_t block_size) {
  lengths.rank(1).same_device(x).size(0, sequences, "the number of sequences");
  const Integers values(lengths);
  const int64_t longest = table.width * block_size;
  std::vector<int64_t> result(static_cast<std::size_t>(sequences));
  for (int64_t b = 0; b < sequences; ++b) {
    check(values[b] >= 0 && values[b] <= longest, lengths.op(), lengths.name(),
          "must be from 0 to ", longest, " (", table.width, " blocks of ", block_size,
          " in a row of ", table.name, "), got ", values[b], " for sequence ", b);
    result[static_cast<std::size_t>(b)] = values[b];
  }
  return result;
}

void check_blocks(const BlockTable& table, const std::vector<int64_t>& lengths,
                  const Cache& cache) {
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const int64_t needed = (lengths[b] + cache.block_size - 1) / cache.block_size;
    for (int64_t index = 0; index < needed; ++index) {
      table.checked_block(static_cast<int64_t>(b), index, cache.blocks);
    }
  }
}

}  // namespace custom_pypto_sparse_attention
