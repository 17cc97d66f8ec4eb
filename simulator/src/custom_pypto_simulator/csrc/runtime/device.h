// The calling thread's device and recent error, and asynchronous errors by device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {

struct Error {
  int code;
  std::string text;
};

inline thread_local std::optional<Error> recent_error;

// Returns and clears the calling thread's recent error.
inline std::optional<Error> take_recent() { return std::exchange(recent_error, std::nullopt); }

// The cores of a device, and the default limit of a stream.
constexpr int64_t kCubeCores = 24;
constexpr int64_t kVectorCores = 48;

// The device that the calling thread has chosen, if any.
std::optional<int32_t> chosen_device();

// The calling thread's device; 0 where none was chosen, as the runtime's implicit context does.
int32_t current_device();

void choose_device(int32_t device);

// Sets the device's asynchronous error, unless an earlier one is unreported.
void raise_on_device(int32_t device, const Error& error);

// Clears the device's asynchronous error and reports it: 0 for none, or its code with the recent
// error set. That of a lost device stays.
int device_status(int32_t device);

// 0, or an error's code with the recent error set if the device is lost:
// custom_pypto_sim_lose_device.
int refuse_if_lost(const char* function, int32_t device);

}  // namespace custom_pypto_simulator
