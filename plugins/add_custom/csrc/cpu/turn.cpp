#include "turn.h"

namespace custom_pypto_add_custom {
namespace {

template <class T>
void by_columns(const T* from, int64_t from_row, int64_t from_column, T* to, int64_t to_row,
                int64_t rows, int64_t columns) {
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      to[row * to_row + column] = from[row * from_row + column * from_column];
    }
  }
}

template <class T>
void by_rows(const T* from, int64_t from_row, int64_t from_column, T* to, int64_t to_row,
             int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      to[row * to_row + column] = from[row * from_row + column * from_column];
    }
  }
}

// Elements are copied as integers of their size, whatever their type is.
typedef uint16_t Bits16 __attribute__((may_alias));
typedef uint32_t Bits32 __attribute__((may_alias));
typedef uint64_t Bits64 __attribute__((may_alias));

}  // namespace

#define CUSTOM_PYPTO_ADD_CUSTOM_TURN(type, order)                                                \
  order(reinterpret_cast<const type*>(from), from_row, from_column, reinterpret_cast<type*>(to), \
        to_row, rows, columns)

void turn_columns(const char* from, int64_t from_row, int64_t from_column, char* to, int64_t to_row,
                  int64_t rows, int64_t columns, int64_t size) {
  if (size == 2) return CUSTOM_PYPTO_ADD_CUSTOM_TURN(Bits16, by_columns);
  if (size == 4) return CUSTOM_PYPTO_ADD_CUSTOM_TURN(Bits32, by_columns);
  CUSTOM_PYPTO_ADD_CUSTOM_TURN(Bits64, by_columns);
}

void turn_rows(const char* from, int64_t from_row, int64_t from_column, char* to, int64_t to_row,
               int64_t rows, int64_t columns, int64_t size) {
  if (size == 2) return CUSTOM_PYPTO_ADD_CUSTOM_TURN(Bits16, by_rows);
  if (size == 4) return CUSTOM_PYPTO_ADD_CUSTOM_TURN(Bits32, by_rows);
  CUSTOM_PYPTO_ADD_CUSTOM_TURN(Bits64, by_rows);
}

}  // namespace custom_pypto_add_custom
