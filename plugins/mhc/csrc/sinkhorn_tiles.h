// How norm and sum of npu_mhc_sinkhorn are divided into tiles: as CANN's kernel for Ascend 950 does
// on 64 cores, so that both devices can read what the other one wrote.
#pragma once

#include <custom_pypto_blocks/divide.h>

#include <algorithm>
#include <cstdint>

namespace custom_pypto_mhc {

// The tokens [first, first + count).
struct TokenRange {
  int64_t first;
  int64_t count;
};

// Each core has as many tokens; its tiles have as many as its memory holds.
class SinkhornTiles {
 public:
  SinkhornTiles(int64_t tokens, int64_t streams)
      : tokens_(tokens), of_core_(std::max<int64_t>(custom_pypto::divide_up(tokens, kCores), 1)) {
    of_tile_ = of_core_;
    if (bytes(of_core_, streams) > kBytes) {
      const int64_t most = kBytes / bytes(1, streams);
      of_tile_ = most / kMultiple * kMultiple;
    }
    tiles_of_core_ = custom_pypto::divide_up(of_core_, of_tile_);
  }

  int64_t count() const { return custom_pypto::divide_up(tokens_, of_core_) * tiles_of_core_; }

  // May be empty.
  TokenRange operator[](int64_t tile) const {
    const int64_t core = tile / tiles_of_core_ * of_core_;
    const int64_t first = core + tile % tiles_of_core_ * of_tile_;
    const int64_t end = std::min({tokens_, core + of_core_, first + of_tile_});
    return {first, std::max<int64_t>(end - first, 0)};
  }

 private:
  static constexpr int64_t kCores = 64;
  static constexpr int64_t kMultiple = 8;
  // Half of a core's memory without the buffers of masks and of the tiling.
  static constexpr int64_t kBytes = (248 * 1024 - 64 - 512) / 2;

  // The matrices read and written, the rows of norm and of sum of an iteration.
  static int64_t bytes(int64_t tokens, int64_t streams) {
    const int64_t matrix =
        custom_pypto::divide_up(tokens * streams * streams, kMultiple) * kMultiple;
    return 4 * (2 * matrix + 2 * kMultiple * tokens * (streams + 1));
  }

  int64_t tokens_;
  int64_t of_core_;
  int64_t of_tile_;
  int64_t tiles_of_core_;
};

}  // namespace custom_pypto_mhc
