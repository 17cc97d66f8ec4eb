// An op that draws from torch's default generator, and one that does not.
#include <custom_pypto/dispatcher.h>
#include <custom_pypto/plugin.h>

#include <optional>

#include "ops.h"

static void random_uniform_cpu(const ops::random_uniform::Arguments&,
                               const ops::random_uniform::Sizes&,
                               const ops::random_uniform::Outputs& out) {
  custom_pypto::call_op<custom_pypto::Tensor>("aten::uniform_", "", out.result, 0.0, 1.0,
                                              std::nullopt);
}

static void random_none_cpu(const ops::random_none::Arguments&, const ops::random_none::Sizes&,
                            const ops::random_none::Outputs& out) {
  custom_pypto::call_op<custom_pypto::Tensor>("aten::zero_", "", out.result);
}

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::random_uniform>().impl<&random_uniform_cpu>("CPU");
  plugin.def<ops::random_none>().impl<&random_none_cpu>("CPU");
}
