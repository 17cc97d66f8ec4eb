// CUSTOM_PYPTO_SIM_ACLNN: defines a simulated aclnn kernel, for tests without an NPU.
//
//   #include <custom_pypto_simulator/aclnn.h>
//
//   CUSTOM_PYPTO_SIM_ACLNN(aclnnAddCustom, at::Tensor self, at::Tensor other, at::Tensor& out) {
//     out.copy_(custom_pypto_simulator::call<at::Tensor>("custom_pypto::add_custom", self, other));
//   }
//
// That exports aclnnAddCustomGetWorkspaceSize and aclnnAddCustom. Their C signatures follow from
// the parameters (see the table in argument.h). Phase 1 reads the arguments, phase 2 puts the body
// on the stream. An exception in the body becomes the stream's asynchronous error.
#pragma once

#include <c10/core/InferenceMode.h>

#include <memory>
#include <tuple>
#include <utility>

#include "custom_pypto_simulator/argument.h"
#include "custom_pypto_simulator/call.h"
#include "custom_pypto_simulator/objects.h"
#include "custom_pypto_simulator/runtime.h"

#ifndef CUSTOM_PYPTO_SIM_ABI
#error "compile simulated kernels with `custom-pypto-sim kernels`, which knows what is installed"
#endif

namespace custom_pypto_simulator {

struct Workspace {
  void* data = nullptr;
  uint64_t bytes = 0;
};

// The workspace of phase 2, inside a kernel's body.
inline Workspace& workspace() {
  static thread_local Workspace current;
  return current;
}

// The parts that depend only on the types of a body and of its parameters.
template <class Body, class... Args>
struct Kernel {
  using Stored = std::tuple<typename Argument<Args>::Stored...>;
  using Plan = uint64_t (*)(Stored&);

  // How phase 1 gets the size of the workspace; `Planned` is called with the body's arguments.
  template <class Planned>
  static uint64_t plan(Stored& stored) {
    return apply(Planned(), stored);
  }

  static int prepare(const char* name, Body body, Plan planned, typename Argument<Args>::C... args,
                     uint64_t* workspace_size, aclOpExecutor** executor) {
    // First: with other headers, every object passed here may have another layout.
    const int code = custom_pypto_sim_check_abi(CUSTOM_PYPTO_SIM_ABI, name);
    if (code != 0) return code;
    if (custom_pypto_sim_phase_1_fault(name)) return kInnerError;
    try {
      WatchedArguments watched;
      // Braces, so that arguments are read from first to last.
      auto prepared =
          std::make_shared<Prepared>(body, Stored{Argument<Args>::store(args, watched)...});
      const uint64_t bytes = planned == nullptr ? 0 : planned(prepared->stored());
      std::shared_ptr<PreparedOp> op = std::move(prepared);
      return custom_pypto_sim_make_executor(name, bytes, &watched, &op, workspace_size, executor);
    } catch (const std::exception& exception) {
      return fail(kParameterInvalid, name, "GetWorkspaceSize: ", exception.what());
    }
  }

 private:
  class Prepared final : public PreparedOp {
   public:
    Prepared(Body body, Stored stored) : body_(body), stored_(std::move(stored)) {}

    Stored& stored() { return stored_; }

    void run(void* data, uint64_t bytes) override {
      workspace() = {data, bytes};
      apply(body_, stored_);
      workspace() = {};
    }

    std::shared_ptr<PreparedOp> with_storages(void* const* addresses) const override {
      if constexpr ((can_move<typename Argument<Args>::Stored> && ...)) {
        auto copy = std::make_shared<Prepared>(*this);
        std::apply([&](auto&... stored) { (move_to(stored, addresses), ...); }, copy->stored_);
        return copy;
      } else {
        (void)addresses;
        return nullptr;
      }
    }

   private:
    Body body_;
    Stored stored_;
  };

  template <class Callable>
  static auto apply(const Callable& callable, Stored& stored) {
    const c10::InferenceMode no_autograd;
    return std::apply([&](auto&... each) { return callable(Argument<Args>::load(each)...); },
                      stored);
  }
};

// Phase 1 of one op. `Definition` has its name(), pointer() to the body, and plan().
template <class Definition, class Signature = typename Definition::Signature>
struct Phase1;

template <class Definition, class... Args>
struct Phase1<Definition, void(Args...)> {
  using Kernel = custom_pypto_simulator::Kernel<decltype(Definition::pointer()), Args...>;

  static int call(typename Argument<Args>::C... args, uint64_t* workspace_size,
                  aclOpExecutor** executor) {
    return Kernel::prepare(Definition::name(), Definition::pointer(),
                           Definition::template plan<Kernel>(), args..., workspace_size, executor);
  }
};

// A library of simulated kernels exports one for each op, as custom_pypto_sim_op_<aclnn name>: its
// ABI, and its parameters as they stand in the source, "at::Tensor self, at::Tensor& out". The
// graph engine reads it: graph_kernels.py.
struct Op {
  const char* abi;
  const char* parameters;
};

}  // namespace custom_pypto_simulator

// The C symbol of phase 1 is an ifunc: its parameter types follow from the body's, and C++ cannot
// define a function with a computed type.
#define CUSTOM_PYPTO_SIM_ACLNN_PHASES(aclnn_name, definition)                                 \
  extern "C" __attribute__((used, visibility("hidden"))) void (*aclnn_name##_resolve())() {   \
    return reinterpret_cast<void (*)()>(&::custom_pypto_simulator::Phase1<definition>::call); \
  }                                                                                           \
  extern "C" __attribute__((visibility("default"), ifunc(#aclnn_name "_resolve"))) void       \
  aclnn_name##GetWorkspaceSize();                                                             \
  CUSTOM_PYPTO_SIM_EXPORT int aclnn_name(void* workspace, uint64_t workspace_size,            \
                                         aclOpExecutor* executor, aclrtStream stream) {       \
    return custom_pypto_sim_launch(#aclnn_name, workspace, workspace_size, executor, stream); \
  }

// A kernel without the record by which the graph engine finds it.
#define CUSTOM_PYPTO_SIM_ACLNN_KERNEL(aclnn_name, planned, ...)  \
  namespace {                                                    \
  struct aclnn_name##_kernel {                                   \
    using Signature = void(__VA_ARGS__);                         \
    static constexpr const char* name() { return #aclnn_name; }  \
    static void body(__VA_ARGS__);                               \
    static Signature* pointer() { return &body; }                \
    template <class Kernel>                                      \
    static typename Kernel::Plan plan() {                        \
      return planned;                                            \
    }                                                            \
  };                                                             \
  }                                                              \
  CUSTOM_PYPTO_SIM_ACLNN_PHASES(aclnn_name, aclnn_name##_kernel) \
  void aclnn_name##_kernel::body(__VA_ARGS__)

#define CUSTOM_PYPTO_SIM_ACLNN_DEFINE(aclnn_name, planned, ...)                                \
  extern "C" __attribute__((visibility("default"), used))                                      \
  const ::custom_pypto_simulator::Op custom_pypto_sim_op_##aclnn_name = {CUSTOM_PYPTO_SIM_ABI, \
                                                                         #__VA_ARGS__};        \
  CUSTOM_PYPTO_SIM_ACLNN_KERNEL(aclnn_name, planned, __VA_ARGS__)

#define CUSTOM_PYPTO_SIM_ACLNN(aclnn_name, ...) \
  CUSTOM_PYPTO_SIM_ACLNN_DEFINE(aclnn_name, nullptr, __VA_ARGS__)

// The same for an op that needs a workspace or refuses some arguments: `planned` names a function
// that phase 1 calls with the body's arguments. It returns the bytes of workspace, and throws to
// refuse. The body finds the workspace with custom_pypto_simulator::workspace().
#define CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnn_name, planned, ...) \
  namespace {                                                    \
  struct aclnn_name##_plan {                                     \
    template <class... Args>                                     \
    uint64_t operator()(Args&&... args) const {                  \
      return planned(args...);                                   \
    }                                                            \
  };                                                             \
  }                                                              \
  CUSTOM_PYPTO_SIM_ACLNN_DEFINE(aclnn_name, &Kernel::template plan<aclnn_name##_plan>, __VA_ARGS__)
