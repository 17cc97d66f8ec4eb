// Which instruction sets this machine has.
#include <custom_pypto/current_isa.h>

extern "C" bool machine_has(const char* name) {
  for (const auto& each : custom_pypto::kAllIsas) {
    if (std::string_view(name) == each.name) return custom_pypto::machine_has(each.isa);
  }
  return false;
}
