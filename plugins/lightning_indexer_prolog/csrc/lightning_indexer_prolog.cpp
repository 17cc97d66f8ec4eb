// The kernels of npu_lightning_indexer_prolog_pto, and its registration.
#include <custom_pypto/plugin.h>

#include "npu/prolog.h"
#include "prolog.h"

namespace custom_pypto_lightning_indexer_prolog {
namespace {

void prolog_cpu(const Op::Arguments& a, const Op::Sizes& s, const Op::Outputs& outputs) {
  Prolog(a, s).run(outputs);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Op>().impl<&prolog_cpu>("CPU").impl<&npu::prolog>("PrivateUse1");
}

}  // namespace custom_pypto_lightning_indexer_prolog
