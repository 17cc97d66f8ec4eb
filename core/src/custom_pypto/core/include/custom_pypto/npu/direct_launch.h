// Launches of kernels that are a plain function, without the two phases of aclnn, such as
// `kernel<<<blocks, nullptr, stream>>>(...)` or a wrapper that CANN generates.
//
//   extern "C" void adv_step(uint32_t blocks, void* l2ctrl, void* stream, uint8_t* tokens,
//                            uint8_t* positions, int64_t count);
//
//   custom_pypto::npu::launch_direct("advance_step", &adv_step, 8, tokens, positions, count);
//
// A KernelChoice finds such a function by its name in the wheel or on the machine:
// `kernels.get().launcher<decltype(adv_step)>()`.
//
// The call waits in torch_npu's task queue behind the ops that were called before.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/npu/allocation.h>
#include <custom_pypto/npu/argument.h>
#include <custom_pypto/npu/kernel_choice.h>
#include <custom_pypto/npu/storage_format.h>
#include <custom_pypto/npu/task.h>
#include <custom_pypto/npu/torch_npu.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// A tensor whose strides the kernel knows how to read: it need not be contiguous.
struct Strided {
  const Tensor& tensor;
};

namespace detail {

// The address of the first element, storage offset included.
template <typename P>
P address(const ArgumentPlace& place, const Tensor& tensor) {
  static_assert(std::is_pointer_v<P>, "custom_pypto: a tensor goes where the kernel has a pointer");
  if (!is_plain(tensor)) {
    fail_argument(place,
                  "is in a private storage format of the NPU, which the kernel cannot read; ",
                  "cast it with torch_npu.npu_format_cast(tensor, 2)");
  }
  if constexpr (std::is_const_v<std::remove_pointer_t<P>>) {
    return static_cast<P>(tensor.const_data_ptr());
  } else {
    return static_cast<P>(tensor.mutable_data_ptr());
  }
}

// Converts an argument to the type of the kernel's parameter.
template <typename P, typename A>
P convert(const ArgumentPlace& place, const A& argument) {
  if constexpr (std::is_same_v<A, Strided>) {
    return address<P>(place, argument.tensor);
  } else if constexpr (std::is_same_v<A, Tensor>) {
    if (!argument.is_contiguous()) {
      fail_argument(place, "must be contiguous, got shape ", argument.sizes(), " with strides ",
                    argument.strides());
    }
    return address<P>(place, argument);
  } else if constexpr (std::is_same_v<A, std::optional<Tensor>>) {
    return argument.has_value() ? convert<P>(place, *argument) : nullptr;
  } else {
    static_assert(std::is_arithmetic_v<A> && std::is_arithmetic_v<P> &&
                      std::is_floating_point_v<A> == std::is_floating_point_v<P>,
                  "custom_pypto: launch_direct gives a Tensor, a std::optional<Tensor> or a "
                  "Strided for a pointer, and a number for a number of its kind; not an A for the "
                  "P of this convert<P, A>");
    const P converted = static_cast<P>(argument);
    if constexpr (std::is_integral_v<P>) {
      if (static_cast<A>(converted) != argument) {
        fail_argument(place, "is ", argument, ", which the kernel's parameter cannot hold");
      }
    }
    return converted;
  }
}

inline void add_device(LaunchDevice& device, const ArgumentPlace& place, const Strided& argument) {
  device.add(place.title, place.number, argument.tensor);
}
template <typename A>
void add_device(LaunchDevice& device, const ArgumentPlace& place, const A& argument) {
  visit_tensors(argument,
                [&](const Tensor& tensor) { device.add(place.title, place.number, tensor); });
}

// Calls a function that returns "" or the error.
template <typename F>
class DirectTask final : public Task {
 public:
  explicit DirectTask(F run) : run_(std::move(run)) {}

 private:
  std::string run() override { return run_(); }
  void release() noexcept override {}

  F run_;
};

template <typename Return, typename... P, std::size_t... I, typename... A>
void launch_direct(const std::string& op, Return (*function)(uint32_t, void*, void*, P...),
                   uint32_t blocks, std::index_sequence<I...>, const A&... arguments) {
  LaunchDevice device;
  (add_device(device, ArgumentPlace{op, I + 1}, arguments), ...);
  const DeviceScope scope(device.index());
  const AclStream stream = torch_npu().stream();
  std::tuple<P...> converted{convert<P>(ArgumentPlace{op, I + 1}, arguments)...};
  auto run = [=, op = op]() -> std::string {
    torch_npu().use_limits(stream);
    const auto call = [&](P... each) { return function(blocks, nullptr, stream, each...); };
    if constexpr (std::is_void_v<Return>) {
      std::apply(call, converted);
      return "";
    } else {
      const auto code = std::apply(call, converted);
      if (code == 0) return "";
      const std::string reason = recent_error();
      return op + ": launching its kernel failed with code " + std::to_string(code) + ": " +
             (reason.empty() ? "CANN gives no reason" : reason);
    }
  };
  enqueue(op, std::make_shared<DirectTask<decltype(run)>>(std::move(run)));
}

}  // namespace detail

// Calls function(blocks, null, stream, arguments...) on the current stream of the tensors' device,
// in the order of the ops around it. A Tensor must be contiguous and is passed as the address of
// its first element; through a pointer to non-const the kernel may write. If the function returns a
// status, a non-zero one is an error. Throws std::runtime_error that begins with `op`.
template <typename Return, typename... P, typename... A>
void launch_direct(const char* op, Return (*function)(uint32_t, void*, void*, P...),
                   uint32_t blocks, const A&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A),
                "custom_pypto: launch_direct takes as many arguments as the kernel has parameters");
  detail::launch_direct(std::string(op), function, blocks, std::index_sequence_for<P...>(),
                        arguments...);
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
