// Copies of matrices between plain order and FRACTAL_NZ.
#include "format_cast.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "custom_pypto_simulator/runtime.h"

namespace custom_pypto_simulator {
namespace {

bool is_nz(const aclTensorDesc& tensor) { return tensor.storage_format == ACL_FORMAT_FRACTAL_NZ; }

// The element (row, column) of a matrix in memory.
int64_t place(const aclTensorDesc& matrix, int64_t row, int64_t column) {
  if (!is_nz(matrix)) return row * matrix.shape[1] + column;
  const auto& tiles = matrix.storage_shape;  // [N / tile, K / 16, 16, tile]
  const int64_t tile = column / tiles[3] * tiles[1] + row / tiles[2];
  return (tile * tiles[2] + row % tiles[2]) * tiles[3] + column % tiles[3];
}

struct Copy {
  aclTensorDesc from;
  aclTensorDesc to;
  aclDataBuffer source;
  aclDataBuffer target;

  void run() const {
    if (is_nz(from) == is_nz(to)) {
      std::memmove(target.data, source.data, std::min(source.bytes, target.bytes));
      return;
    }
    std::memset(target.data, 0, target.bytes);  // padding of tiles
    const size_t size = aclDataTypeSize(from.dtype);
    for (int64_t row = 0; row < from.shape[0]; ++row) {
      for (int64_t column = 0; column < from.shape[1]; ++column) {
        std::memcpy(
            static_cast<char*>(target.data) + static_cast<size_t>(place(to, row, column)) * size,
            static_cast<const char*>(source.data) +
                static_cast<size_t>(place(from, row, column)) * size,
            size);
      }
    }
  }
};

bool is_known(const aclTensorDesc& tensor) {
  switch (tensor.storage_format) {
    case ACL_FORMAT_ND:
    case ACL_FORMAT_NCHW:
    case ACL_FORMAT_NHWC:
    case ACL_FORMAT_NCDHW:
      return true;
    case ACL_FORMAT_FRACTAL_NZ:
      return tensor.shape.size() == 2 && tensor.storage_shape.size() == 4;
    default:
      return false;
  }
}

}  // namespace

bool can_cast_format(const aclTensorDesc& from, const aclTensorDesc& to) {
  return from.dtype == to.dtype && from.shape == to.shape && is_known(from) && is_known(to);
}

aclError cast_format(const aclTensorDesc& from, const aclDataBuffer& source,
                     const aclTensorDesc& to, const aclDataBuffer& target, aclrtStream stream) {
  auto copy = std::make_unique<Copy>(Copy{from, to, source, target});
  const auto run = [](void* state) {
    static_cast<Copy*>(state)->run();
    return 0;
  };
  const auto destroy = [](void* state) { delete static_cast<Copy*>(state); };
  return custom_pypto_sim_enqueue(stream, "Identity", run, copy.release(), destroy);
}

}  // namespace custom_pypto_simulator
