// Matrices in the private format FRACTAL_NZ: tiles of 16 rows and 32 bytes, padded.
#pragma once

#include <ATen/core/Tensor.h>

#include <stdexcept>

#include "custom_pypto_simulator/argument.h"

namespace custom_pypto_simulator {

// A matrix [K, N] in plain order, from [N / tile, K / 16, 16, tile] in memory.
inline at::Tensor from_fractal_nz(const aclTensor& matrix) {
  const auto& tiles = matrix.storage_shape;
  if (matrix.format != ACL_FORMAT_FRACTAL_NZ || tiles.size() != 4) {
    throw std::invalid_argument("a matrix must be in the format FRACTAL_NZ");
  }
  return at::from_blob(matrix.data, at::IntArrayRef(tiles.data(), tiles.size()),
                       at::TensorOptions().dtype(scalar_type(matrix.dtype)))
      .permute({1, 2, 0, 3})
      .reshape({tiles[1] * tiles[2], tiles[0] * tiles[3]})
      .slice(0, 0, matrix.shape[0])
      .slice(1, 0, matrix.shape[1])
      .contiguous();
}

// The tensor's own memory, or, of a matrix in FRACTAL_NZ, a copy in plain order.
inline at::Tensor plain(const aclTensor& tensor) {
  return tensor.format == ACL_FORMAT_FRACTAL_NZ ? from_fractal_nz(tensor) : view(tensor);
}

}  // namespace custom_pypto_simulator
