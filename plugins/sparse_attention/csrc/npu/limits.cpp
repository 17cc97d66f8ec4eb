// The limits that CANN documents for Atlas A2 and A3, in "约束说明" of aclnnMlaPrologV3WeightNz.md,
// aclnnSparseFlashAttention.md and aclnnLightningIndexer.md of its ops-transformer, and of
// torch_npu-npu_mla_prolog_v3.md, torch_npu-npu_sparse_flash_attention.md and
// torch_npu-npu_lightning_indexer.md of op-plugin. Where versions differ: what all of them take.
#include "npu/limits.h"

namespace custom_pypto_sparse_attention::npu {
namespace {

// Later versions take further ones, which are composed of other ops.
constexpr int64_t kHidden[] = {7168, 7680};
constexpr int64_t kQueryRank = 1536;
constexpr int64_t kNope = 128;

// The same for both kernels.
constexpr int64_t kLatent = 512;
constexpr int64_t kRope = 64;
constexpr int64_t kMaxHeads = 128;
constexpr int64_t kBlockUnit = 16;
constexpr int64_t kMaxBlock = 1024;

constexpr int64_t kMaxIndexHeads = 64;
constexpr int64_t kIndexSize = 128;

constexpr const char* kFusedNeeds =
    ", which is used with contiguous caches, and weights of 16 bits with multiples of 16 columns";

bool takes_heads(int64_t heads) {
  return heads >= 1 && heads <= kMaxHeads && (heads & (heads - 1)) == 0;
}

bool takes_block(int64_t size) { return size >= 1 && size <= kMaxBlock && size % kBlockUnit == 0; }

template <typename... Parts>
void limit(bool holds, const Arg& argument, const Parts&... parts) {
  check(holds, argument.op(), argument.name(), parts...,
        " (a limit of aclnnSparseFlashAttention, which CANN ships; npu_sparse_attention_pto has "
        "none where an opp package has aclnnSparseAttentionPto",
        kFusedNeeds, ")");
}

}  // namespace

bool fits_mla_prolog(const MlaArguments& a, const MlaShapes& shapes) {
  for (const Tensor* each : {&a.x, &a.gamma_cq, &a.gamma_ckv, &a.sin, &a.cos}) {
    if (each->scalar_type() != ScalarType::BFloat16) return false;
  }
  const int64_t hidden = a.x.size(-1);
  return (hidden == kHidden[0] || hidden == kHidden[1]) &&
         shapes.down_query.columns == kQueryRank && shapes.nope == kNope &&
         shapes.latent == kLatent && shapes.rope == kRope && takes_heads(shapes.heads) &&
         takes_block(a.kv_cache.size(1));
}

void check_attention_limits(const Arg& holder, int64_t heads, const Arg& kv_cache,
                            const Arg& kr_cache) {
  limit(takes_heads(heads), holder, "must have 1, 2, 4, 8, 16, 32, 64 or 128 heads, got ", heads,
        " in ", holder.tensor().sizes());
  const Tensor& kv = kv_cache.tensor();
  const ScalarType dtype = kv.scalar_type();
  limit(dtype == ScalarType::BFloat16 || dtype == ScalarType::Half, kv_cache,
        "must be bfloat16 or float16, got ", dtype);
  limit(kv.size(3) == kLatent, kv_cache, "must have rows of size ", kLatent, ", got ", kv.size(3),
        " in ", kv.sizes());
  const Tensor& kr = kr_cache.tensor();
  limit(kr.size(3) == kRope, kr_cache, "must have rows of size ", kRope, ", got ", kr.size(3),
        " in ", kr.sizes());
  limit(takes_block(kv.size(1)), kv_cache, "must have a block_size that is a multiple of ",
        kBlockUnit, " and at most ", kMaxBlock, ", got ", kv.size(1), " in ", kv.sizes());
}

void check_indexer_limits(const Arg& holder, int64_t heads, const Arg& index_k_cache) {
  const auto index_limit = [](bool holds, const Arg& argument, const auto&... parts) {
    check(holds, argument.op(), argument.name(), parts...,
          " (a limit of aclnnLightningIndexer, which CANN ships; npu_sparse_attention_pto does not "
          "have it where an opp package has aclnnLightningIndexerPto, nor where an opp package has "
          "aclnnSparseAttentionPto",
          kFusedNeeds, ")");
  };
  index_limit(heads <= kMaxIndexHeads, holder, "must have at most ", kMaxIndexHeads,
              " columns, one for each of the indexer's heads, got ", heads, " in ",
              holder.tensor().sizes());
  const Tensor& cache = index_k_cache.tensor();
  index_limit(cache.size(3) == kIndexSize, index_k_cache, "must have rows of size ", kIndexSize,
              ", got ", cache.size(3), " in ", cache.sizes());
}

}  // namespace custom_pypto_sparse_attention::npu
