// Calls aclnn functions without their C signature, as the graph engine does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "custom_pypto_simulator/objects.h"

namespace custom_pypto_simulator {

// What the graph engine's op has for a parameter of a kernel.
enum class Role { input, optional_input, dynamic_input, output, written_input, attribute };
struct ParameterKind {
  Role role;
  const char* attribute = "";  // its type: "VT_INT", "VT_FLOAT", "VT_LIST_INT", ...
};

// One argument of an aclnn call: the member of the C type. A null pointer is an absent argument.
struct Value {
  const void* pointer = nullptr;
  int64_t integer = 0;
  double real = 0;
};

// A simulated library exports one for each op, as custom_pypto_sim_op_<aclnn name>.
struct Op {
  const char* abi;  // see abi.h
  const char* name;
  const char* parameters;  // as they stand in the source: "at::Tensor self, at::Tensor& out"
  const ParameterKind* kinds;
  size_t count;
  int (*prepare)(const Value* values, uint64_t* workspace_size, aclOpExecutor** executor);
  int (*launch)(void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                aclrtStream stream);
};

}  // namespace custom_pypto_simulator
