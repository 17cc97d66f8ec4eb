// Reads the wire format of protocol buffers: https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "custom_pypto_simulator/need.h"

namespace custom_pypto_simulator {

struct Field {
  uint32_t number;
  uint32_t type;           // 0 varint, 1 fixed64, 2 bytes, 5 fixed32
  uint64_t integer;        // of types 0, 1 and 5
  std::string_view bytes;  // of type 2

  int64_t as_int() const { return static_cast<int64_t>(integer); }
  std::string text() const { return std::string(bytes); }
  float as_float() const {
    const auto bits = static_cast<uint32_t>(integer);
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
};

// Reads numbers and bytes. Throws when they end early.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    refuse("a serialised graph has a number that does not end");
  }

  uint64_t fixed(size_t size) {
    uint64_t value = 0;
    const std::string_view bytes = take(size);
    std::memcpy(&value, bytes.data(), size);
    return value;
  }

  bool is_empty() const { return bytes_.empty(); }

  std::string_view take(uint64_t size) {
    need(size <= bytes_.size(), "a serialised graph ends early");
    const std::string_view result = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return result;
  }

 private:
  std::string_view bytes_;
};

// The fields of one message, in order.
inline std::vector<Field> fields_of(std::string_view bytes) {
  std::vector<Field> fields;
  for (Reader message(bytes); !message.is_empty();) {
    const uint64_t key = message.varint();
    Field field{static_cast<uint32_t>(key >> 3), static_cast<uint32_t>(key & 7), 0, {}};
    switch (field.type) {
      case 0:
        field.integer = message.varint();
        break;
      case 1:
        field.integer = message.fixed(8);
        break;
      case 2:
        field.bytes = message.take(message.varint());
        break;
      case 5:
        field.integer = message.fixed(4);
        break;
      default:
        refuse("a serialised graph has wire type ", field.type);
    }
    fields.push_back(field);
  }
  return fields;
}

// Calls `take` for each element of a repeated number, packed or not.
template <class Take>
void each_number(const Field& field, const Take& take) {
  if (field.type != 2) return take(field);
  for (Reader packed(field.bytes); !packed.is_empty();) {
    take(Field{field.number, 0, packed.varint(), {}});
  }
}

}  // namespace custom_pypto_simulator
