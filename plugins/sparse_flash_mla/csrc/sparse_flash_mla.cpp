// The kernels of the ops, and their registration.
#include <custom_pypto/empty.h>
#include <custom_pypto/plugin.h>

#include <algorithm>

#include "attention.h"

namespace custom_pypto_sparse_flash_mla {
namespace {

void attention_cpu(const Forward::Arguments& a, const Forward::CallShape& s,
                   const Forward::Outputs& outputs) {
  if (!a.return_softmax_lse) *outputs.lse.mutable_data_ptr<float>() = 0.0f;
  if (a.q.numel() == 0) return;
  if (a.q.scalar_type() == ScalarType::Double) return attention_fp64(a, s, outputs);
  attention(a, s, outputs);
}

// The op does not read it here.
Metadata::Outputs metadata_cpu(const Metadata::Arguments& a, const Metadata::CallShape&) {
  Tensor metadata = empty({ops::METADATA_SIZE}, ScalarType::Int, given_tensor(a));
  std::fill_n(metadata.mutable_data_ptr<int32_t>(), ops::METADATA_SIZE, 0);
  return {metadata};
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Forward>().impl<&attention_cpu>("CPU").impl<&Forward::launch>("PrivateUse1");
  plugin.def<Grad>().impl<&attention_grad>("CPU").impl<&launch_grad>("PrivateUse1");
  plugin.def<Metadata>().impl<&metadata_cpu>("CPU").impl<&launch_metadata>("PrivateUse1");
}

}  // namespace custom_pypto_sparse_flash_mla
