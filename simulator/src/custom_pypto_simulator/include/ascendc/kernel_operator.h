// The part of AscendC that scalar kernels need, for the host: the same source that the Ascend
// compiler builds for AI cores is compiled by g++ and run by a simulated stream.
//
// The cores of a launch run one after the other, the last one first. What `kernel<<<..>>>(..)`
// means is in custom_pypto_simulator/direct_kernel.h, into which simulated kernels are translated.
#pragma once

#include <custom_pypto_simulator/direct_kernel.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#define __global__
#define __aicore__
#define __gm__
#define GM_ADDR uint8_t*
// The kind of core that runs a kernel: here there is one.
#define KERNEL_TASK_TYPE_DEFAULT(type)

namespace AscendC {

enum class CacheLine : uint64_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t {
  CACHELINE_ALL,
  CACHELINE_UB,
  CACHELINE_OUT,
  CACHELINE_ATOMIC,
};

inline int64_t GetBlockIdx() { return custom_pypto_simulator::running_core().index; }
inline int64_t GetBlockNum() { return custom_pypto_simulator::running_core().count; }

// Elements in the NPU's memory. Reading or writing outside of them is the stream's error.
template <typename T>
class GlobalTensor {
 public:
  void SetGlobalBuffer(T* buffer, uint64_t size) {
    buffer_ = buffer;
    size_ = size;
  }
  void SetGlobalBuffer(T* buffer) { SetGlobalBuffer(buffer, UINT64_MAX / sizeof(T)); }

  uint64_t GetSize() const { return size_; }
  T GetValue(uint64_t offset) const { return *at(offset, 1); }
  void SetValue(uint64_t offset, T value) { *at(offset, 1) = value; }
  GlobalTensor operator[](uint64_t offset) const {
    GlobalTensor rest;
    rest.SetGlobalBuffer(at(offset, 0), size_ - offset);
    return rest;
  }

 private:
  T* at(uint64_t offset, uint64_t count) const {
    if (offset > size_ || size_ - offset < count) {
      throw std::runtime_error("GlobalTensor: element " + std::to_string(offset) + " of " +
                               std::to_string(size_));
    }
    custom_pypto_simulator::check_on_device(buffer_ + offset, count * sizeof(T));
    return buffer_ + offset;
  }

  T* buffer_ = nullptr;
  uint64_t size_ = 0;
};

// The host's caches are coherent.
template <typename T, CacheLine line, DcciDst destination = DcciDst::CACHELINE_ALL>
void DataCacheCleanAndInvalid(const GlobalTensor<T>&) {}

}  // namespace AscendC
