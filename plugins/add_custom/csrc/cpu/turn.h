#pragma once

#include <cstdint>

namespace custom_pypto_add_custom {

// to[row * to_row + column] = from[row * from_row + column * from_column]: a tile of elements of
// `size` bytes (2, 4 or 8) is copied so that each row is dense. Steps are in elements. Walks the
// columns in turn, so that memory that is dense along them is read as it lies.
void turn_columns(const char* from, int64_t from_row, int64_t from_column, char* to, int64_t to_row,
                  int64_t rows, int64_t columns, int64_t size);

// The same from a tile that is in cache, row by row, so that `to` is written as it lies.
void turn_rows(const char* from, int64_t from_row, int64_t from_column, char* to, int64_t to_row,
               int64_t rows, int64_t columns, int64_t size);

}  // namespace custom_pypto_add_custom
