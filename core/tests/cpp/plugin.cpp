// A plugin as its author writes it: two ops, one with an overload.
#include "ops.h"

static ops::headers_length::Outputs length(const ops::headers_length::Arguments& a,
                                           const ops::headers_length::CallShape&) {
  return {a.self.numel() + static_cast<int64_t>(a.text.size())};
}

static ops::headers_length_twice::Outputs twice(const ops::headers_length_twice::Arguments& a,
                                                const ops::headers_length_twice::CallShape&) {
  return {2 * a.self.numel()};
}

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<ops::headers_length>().impl<&length>("CPU");
  plugin.def<ops::headers_length_twice>().impl<&twice>("CPU");
}
