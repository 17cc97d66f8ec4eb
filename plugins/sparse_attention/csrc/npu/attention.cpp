#include "attention.h"

#include <custom_pypto/dispatcher.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/launch.h>

#include <limits>
#include <vector>

#include "npu/kernels.h"
#include "npu/tensors.h"

namespace custom_pypto_sparse_attention::npu {
namespace {

using custom_pypto::call_op;
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
  query_rope.rank(a.query.dim()).same_dtype(query).same_device(query);
  const Arg indices(op, "sparse_indices", a.sparse_indices);
  indices.rank(a.query.dim()).size(-2, 1, "one key head");
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

// max and sum are [B, 1, S1, N1] or [1, T, N1]; the result is [B, S1, N1] or [T, N1].
Tensor log_sum_exp(const Tensor& max, const Tensor& sum, const std::vector<int64_t>& sizes) {
  const NoGradients scope;
  return reshaped(add(max, call_op<Tensor>("aten::log", "", sum)), sizes);
}

}  // namespace

AttentionOutputs attention(const char* op, const AttentionArguments& a, bool with_log_sum_exp) {
  check_shapes(op, a);
  const Tensor out = custom_pypto::empty_like_contiguous(a.query);
  const std::vector<int64_t> tokens(a.query.sizes().begin(), a.query.sizes().end() - 1);
  if (out.numel() == 0) {
    const std::vector<int64_t> sizes = with_log_sum_exp ? tokens : std::vector<int64_t>{0};
    return {out, custom_pypto::empty(sizes, ScalarType::Float, a.query)};
  }
  std::vector<int64_t> sizes{0};
  if (with_log_sum_exp) {
    sizes = tokens;
    sizes.insert(sizes.end() - 2, 1);
  }
  const Tensor max = custom_pypto::empty(sizes, ScalarType::Float, a.query);
  const Tensor sum = custom_pypto::empty(sizes, ScalarType::Float, a.query);
  std::optional<Tensor> lengths_query;
  if (a.actual_seq_lengths_query.has_value()) lengths_query = int32(*a.actual_seq_lengths_query);
  launch(kernels.get(), dense(a.query), a.kv_cache, a.kv_cache, int32(a.sparse_indices),
         int32(a.block_table), lengths_query, int32(a.actual_seq_lengths_kv), dense(a.query_rope),
         a.kr_cache, a.scale, 1, a.query.dim() == 4 ? "BSND" : "TND", "PA_BSND", a.sparse_mode,
         kAllTokens, kAllTokens, kAbsorbed, with_log_sum_exp, out, max, sum);
  return {out, with_log_sum_exp ? log_sum_exp(max, sum, tokens) : max};
}

}  // namespace custom_pypto_sparse_attention::npu
