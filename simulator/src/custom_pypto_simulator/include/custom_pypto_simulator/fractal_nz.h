// Matrices in the private format FRACTAL_NZ: tiles of 16 rows and 32 bytes, padded.
#pragma once

#include <ATen/core/Tensor.h>

#include "custom_pypto_simulator/argument.h"

namespace custom_pypto_simulator {

// A matrix [K, N] in plain order, from tiles [N / tile, K / 16, 16, tile], with their padding.
inline at::Tensor from_tiles(const at::Tensor& tiles) {
  need(tiles.dim() == 4, "only matrices can be in FRACTAL_NZ");
  return tiles.permute({1, 2, 0, 3}).flatten(2, 3).flatten(0, 1);
}

// A matrix [K, N] in plain order, without the padding.
inline at::Tensor from_fractal_nz(const aclTensor& matrix) {
  need(matrix.format == ACL_FORMAT_FRACTAL_NZ, "a matrix must be in the format FRACTAL_NZ");
  return from_tiles(at::from_blob(matrix.data, matrix.storage_shape,
                                  at::TensorOptions().dtype(scalar_type(matrix.dtype))))
      .slice(0, 0, matrix.shape[0])
      .slice(1, 0, matrix.shape[1])
      .contiguous();
}

// The tensor's own memory; for a matrix in FRACTAL_NZ, a copy in plain order.
inline at::Tensor plain(const aclTensor& tensor) {
  return tensor.format == ACL_FORMAT_FRACTAL_NZ ? from_fractal_nz(tensor) : view(tensor);
}

}  // namespace custom_pypto_simulator
