// Its kernel calls a function that no library has.
#include <torch/csrc/stable/ops.h>

#include "ops.h"

extern "C" void a_function_that_no_library_has();

static ops::PACKAGE::Outputs copy_of(const ops::PACKAGE::Arguments& a, const ops::PACKAGE::Sizes&) {
  a_function_that_no_library_has();
  return {torch::stable::clone(a.self)};
}

CUSTOM_PYPTO_PLUGIN(plugin) { plugin.def<ops::PACKAGE>().impl<&copy_of>("CPU"); }
