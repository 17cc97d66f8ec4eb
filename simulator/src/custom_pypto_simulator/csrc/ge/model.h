// Reads serialised graphs.
#pragma once

#include <string_view>

#include "custom_pypto_simulator/graph.h"

namespace custom_pypto_simulator {

// Reads a serialised ModelDef. Throws std::invalid_argument.
Model parse_model(std::string_view bytes);

}  // namespace custom_pypto_simulator
