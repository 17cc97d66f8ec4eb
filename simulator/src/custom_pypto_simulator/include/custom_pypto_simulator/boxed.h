// Calls aclnn functions without their C signature, as the graph engine does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "custom_pypto_simulator/objects.h"

namespace custom_pypto_simulator {

enum class Kind {
  tensor,
  tensor_list,
  scalar,
  int_array,
  float_array,
  bool_array,
  string,
  integer,
  real,
};

// One argument of an aclnn call. A null pointer is an absent optional argument.
struct Value {
  Kind kind;
  const void* pointer = nullptr;
  int64_t integer = 0;
  double real = 0;
};

// A simulated library exports one for each op, as custom_pypto_sim_op_<aclnn name>.
struct Op {
  const char* abi;  // see abi.h
  const char* name;
  const char* parameters;  // as they stand in the source: "at::Tensor self, at::Tensor& out"
  size_t count;
  int (*prepare)(const Value* values, uint64_t* workspace_size, aclOpExecutor** executor);
  int (*launch)(void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                aclrtStream stream);
};

}  // namespace custom_pypto_simulator
