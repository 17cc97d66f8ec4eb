// Which instruction sets this machine has.
#include <custom_pypto/current_isa.h>

extern "C" bool machine_has(const char* name) {
  for (const custom_pypto::Isa isa : custom_pypto::kAllIsas) {
    if (std::string_view(name) == custom_pypto::isa_name(isa))
      return custom_pypto::machine_has(isa);
  }
  return false;
}
