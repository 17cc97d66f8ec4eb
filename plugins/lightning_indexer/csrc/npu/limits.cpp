// The limits that CANN documents for aclnnLightningIndexer on Atlas A2 and A3 ("约束说明" of
// aclnnLightningIndexer.md in its ops-transformer, and of torch_npu-npu_lightning_indexer.md in
// op-plugin). Ascend 950 has further ones, which its phase 1 tells.
#include "npu/limits.h"

namespace custom_pypto_lightning_indexer::npu {
namespace {

constexpr int64_t kHeadSize = 128;
constexpr int64_t kMaxHeads = 64;
constexpr int64_t kKeyHeads = 1;
constexpr int64_t kBlockUnit = 16;
constexpr int64_t kMaxBlock = 1024;

// Of those above the first only whole multiples, up to the second.
constexpr int64_t kMaxCount = 2048;
constexpr int64_t kCountUnit = 1024;
constexpr int64_t kMaxLargeCount = 8192;

template <typename... Parts>
void limit(bool holds, const char* argument, const Parts&... parts) {
  custom_pypto::check(
      holds, kOp, argument, parts...,
      " (a limit of aclnnLightningIndexer, which CANN ships; aclnnLightningIndexerPto of an opp "
      "package has none, and takes BSND queries without query lengths, PA_BSND keys, "
      "sparse_count 2048 and sparse_mode 3)");
}

bool takes_count(int64_t count) {
  return count <= kMaxCount || (count <= kMaxLargeCount && count % kCountUnit == 0);
}

}  // namespace

void check_limits(const Arguments& a) {
  const ScalarType dtype = a.query.scalar_type();
  limit(dtype == ScalarType::BFloat16 || dtype == ScalarType::Half, "query",
        "must be bfloat16 or float16, got ", dtype);
  const int64_t heads = a.query.size(-2);
  limit(heads <= kMaxHeads, "query", "must have at most ", kMaxHeads, " heads, got ", heads, " in ",
        a.query.sizes());
  const int64_t size = a.query.size(-1);
  limit(size == kHeadSize, "query", "must have heads of size ", kHeadSize, ", got ", size, " in ",
        a.query.sizes());
  const int64_t key_heads = a.key.size(-2);
  limit(key_heads == kKeyHeads, "key", "must have ", kKeyHeads, " head, got ", key_heads, " in ",
        a.key.sizes());
  if (a.layout_key == "PA_BSND") {
    const int64_t block = a.key.size(1);
    limit(block % kBlockUnit == 0 && block <= kMaxBlock, "key",
          "must have a block_size that is a multiple of ", kBlockUnit, " and at most ", kMaxBlock,
          ", got ", block, " in ", a.key.sizes());
  }
  limit(takes_count(a.sparse_count), "sparse_count", "must be at most ", kMaxCount,
        ", or a multiple of ", kCountUnit, " up to ", kMaxLargeCount, ", got ", a.sparse_count);
}

}  // namespace custom_pypto_lightning_indexer::npu
