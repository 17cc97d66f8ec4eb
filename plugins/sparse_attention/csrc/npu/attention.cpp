#include "attention.h"

#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>
#include <torch/csrc/stable/ops.h>

#include <limits>
#include <vector>

#include "npu/kernels.h"
#include "npu/limits.h"
#include "npu/tensors.h"

namespace custom_pypto_sparse_attention::npu {
namespace {

using custom_pypto::npu::KernelChoice;
using custom_pypto::npu::launch;

constexpr int64_t kAllTokens = std::numeric_limits<int64_t>::max();
// The latent part of query and cache is followed by the rotated part, in tensors of their own.
constexpr int64_t kAbsorbed = 2;

const KernelChoice kernels("npu_sparse_flash_attention", {"aclnnSparseFlashAttention"});

void check_integers(const Arg& argument, const Arg& query) {
  argument.dtype({ScalarType::Int, ScalarType::Long}).same_device(query);
}

void check_shapes(const char* op, const AttentionArguments& a) {
  const Arg query(op, "query", a.query);
  query.rank({3, 4});
  check_activations(query);
  const Arg query_rope(op, "query_rope", a.query_rope);
  query_rope.rank(a.query.dim(), "as query").same_dtype(query).same_device(query);
  const Arg indices(op, "sparse_indices", a.sparse_indices);
  indices.rank(a.query.dim(), "as query").size(-2, 1, "one key head");
  check_integers(indices, query);
  for (int64_t dim = 0; dim + 2 < a.query.dim(); ++dim) {
    query_rope.size(dim, a.query.size(dim), "as many tokens as query");
    indices.size(dim, a.query.size(dim), "as many tokens as query");
  }
  query_rope.size(-2, a.query.size(-2), "as many heads as query");
  const Arg kv_cache(op, "kv_cache", a.kv_cache);
  const Arg kr_cache(op, "kr_cache", a.kr_cache);
  check_cache(kv_cache, query, a.query.size(-1), "the size of query's heads", CacheUse::read);
  check_cache(kr_cache, query, a.query_rope.size(-1), "the size of query_rope's heads",
              CacheUse::read);
  check_same_blocks(kr_cache, kv_cache);

  const Arg block_table(op, "block_table", a.block_table);
  block_table.rank(2);
  check_integers(block_table, query);
  const Arg lengths(op, "actual_seq_lengths_kv", a.actual_seq_lengths_kv);
  lengths.rank(1).size(0, a.block_table.size(0), "the rows of block_table");
  check_integers(lengths, query);
  const bool is_tnd = a.query.dim() == 3;
  if (!is_tnd) query.size(0, a.block_table.size(0), "the rows of block_table");
  check(!is_tnd || a.actual_seq_lengths_query.has_value(), op, "actual_seq_lengths_query",
        "is required with a 3-D query [T, N, D]: the prefix sums of the sequences' query lengths,"
        " got None");
  if (a.actual_seq_lengths_query.has_value()) {
    const Arg lengths_query(op, "actual_seq_lengths_query", *a.actual_seq_lengths_query);
    lengths_query.rank(1).size(0, a.block_table.size(0), "the rows of block_table");
    check_integers(lengths_query, query);
  }
  custom_pypto::ScalarArg(op, "sparse_mode", a.sparse_mode).one_of({0, 3});
}

}  // namespace

Tensor attention(const char* op, const AttentionArguments& a, IndexOrder order) {
  check_shapes(op, a);
  check_attention_limits(Arg(op, "query", a.query), a.query.size(-2),
                         Arg(op, "kv_cache", a.kv_cache), Arg(op, "kr_cache", a.kr_cache));
  Tensor out = custom_pypto::empty_like_contiguous(a.query);
  if (out.numel() == 0) return out;
  // What the kernel takes no empty tensors for: nothing to attend to.
  if (a.sparse_indices.numel() == 0 || a.kv_cache.numel() == 0) {
    return torch::stable::fill_(out, 0);
  }
  const Tensor no_max = custom_pypto::empty({0}, ScalarType::Float, a.query);
  const Tensor no_sum = custom_pypto::empty({0}, ScalarType::Float, a.query);
  std::optional<Tensor> lengths_query = a.actual_seq_lengths_query;
  if (lengths_query.has_value()) {
    // Of BSND queries a length above S1 means S1, but is not for the kernel.
    if (a.query.dim() == 4) lengths_query = at_most(*lengths_query, a.query.size(1));
    lengths_query = int32(*lengths_query);
  }
  const Tensor indices = int32(a.sparse_indices);
  // One tensor for keys and values: a cache that is not contiguous is copied once.
  const Tensor kv_cache = dense(a.kv_cache);
  launch(kernels.get(), dense(a.query), kv_cache, kv_cache,
         order == IndexOrder::any ? sorted_down(indices) : indices, int32(a.block_table),
         lengths_query, int32(a.actual_seq_lengths_kv), dense(a.query_rope), dense(a.kr_cache),
         a.scale, 1, a.query.dim() == 4 ? "BSND" : "TND", "PA_BSND", a.sparse_mode, kAllTokens,
         kAllTokens, kAbsorbed, false, out, no_max, no_sum);
  return out;
}

}  // namespace custom_pypto_sparse_attention::npu
