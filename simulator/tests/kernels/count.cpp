// A kernel in AscendC. Each block adds its number to a range of its own, and its turn to the last
// element.
#include "kernel_operator.h"

extern "C" __global__ __aicore__ void count(GM_ADDR data, int64_t size, int64_t claimed) {
  AscendC::GlobalTensor<int32_t> numbers;
  numbers.SetGlobalBuffer((__gm__ int32_t*)data, claimed);
  const int64_t each = (size - 1) / AscendC::GetBlockNum();
  AscendC::GlobalTensor<int32_t> own = numbers[AscendC::GetBlockIdx() * each];
  for (int64_t i = 0; i < each; ++i) own.SetValue(i, own.GetValue(i) + AscendC::GetBlockIdx());
  numbers.SetValue(size - 1, 10 * numbers.GetValue(size - 1) + AscendC::GetBlockIdx() + 1);
  AscendC::DataCacheCleanAndInvalid<int32_t, AscendC::CacheLine::ENTIRE_DATA_CACHE>(numbers);
}

extern "C" void launch_count(uint32_t blocks, void* l2ctrl, void* stream, uint8_t* data,
                             int64_t size, int64_t claimed) {
  count<<<blocks, l2ctrl, stream>>>(data, size, claimed);
}
