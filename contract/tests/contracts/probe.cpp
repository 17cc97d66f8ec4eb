// Kernels of everything.toml and reserved_names.toml that run the checks, and allocate.
#include "ops.h"

namespace {

void everything(const ops::everything::Arguments&, const ops::everything::CallShape&,
                const ops::everything::Outputs&) {}

// The functions that are for NPUs, by name: "fast", "slow", or limits.
ops::probe_npu::Outputs probe_npu(const ops::probe_npu::Arguments& a,
                                  const ops::probe_npu::CallShape&) {
  const ops::everything::Arguments given{a.x,     a.angles, a.weight, a.cache,     a.bias,
                                         a.table, a.list,   a.kind,   a.flag,      a.k,
                                         a.most,  a.scale,  a.other,  a.out_dtype, a.sizes};
  const ops::everything::CallShape sizes = ops::everything::check(given);
  if (a.what == "fast") return {ops::everything::fast_supports(given, sizes)};
  if (a.what == "slow") return {ops::everything::slow_supports(given, sizes)};
  ops::everything::check_limits_of_aclnnOther(given, sizes);
  return {true};
}

// A kernel that fills its outputs, for any op.
template <class Op>
void fill(const typename Op::Arguments&, const typename Op::CallShape&,
          const typename Op::Outputs&) {}

ops::ops_::Outputs text(const ops::ops_::Arguments& a, const ops::ops_::CallShape&) {
  return {std::string(a.sizes)};
}

ops::optional::Outputs none(const ops::optional::Arguments&, const ops::optional::CallShape&) {
  return {};
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::everything>().impl<&everything>("CompositeExplicitAutograd");
  plugin.def<ops::probe_npu>().impl<&probe_npu>("CompositeExplicitAutograd");
  plugin.def<ops::schema_>().impl<&fill<ops::schema_>>("CompositeExplicitAutograd");
  plugin.def<ops::scale>().impl<&fill<ops::scale>>("CompositeExplicitAutograd");
  plugin.def<ops::scale_out>().impl<&fill<ops::scale_out>>("CompositeExplicitAutograd");
  plugin.def<ops::check_>().impl<&fill<ops::check_>>("CompositeExplicitAutograd");
  plugin.def<ops::choice>().impl<&fill<ops::choice>>("CompositeExplicitAutograd");
  plugin.def<ops::ops_>().impl<&text>("CompositeExplicitAutograd");
  plugin.def<ops::none>().impl<&fill<ops::none>>("CompositeExplicitAutograd");
  plugin.def<ops::edges>().impl<&fill<ops::edges>>("CPU");
  plugin.def<ops::optional>().impl<&none>("CompositeExplicitAutograd");
  plugin.def<ops::words>().impl<&fill<ops::words>>("CompositeExplicitAutograd");
  plugin.def<ops::many>().impl<&fill<ops::many>>("CompositeExplicitAutograd");
}
