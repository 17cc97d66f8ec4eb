// The protocol between a test and a driver. Standard input has requests: a number that names the
// request, then integers and floating-point numbers of 8 bytes, and arrays, which begin with their
// size in bytes. Standard output has the answers: arrays.
#pragma once

#include <custom_pypto/current_isa.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>

namespace driver {

// An array, aligned as the scratch memory of the ops is.
class Bytes {
 public:
  explicit Bytes(int64_t size)
      : size_(size), data_(static_cast<char*>(std::aligned_alloc(64, (size + 64) / 64 * 64))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }

  template <class T = char>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }
  int64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  int64_t size_;
  std::unique_ptr<char, Free> data_;
};

template <class T>
T read_number() {
  static_assert(sizeof(T) == 8);
  T value;
  if (std::fread(&value, sizeof value, 1, stdin) != 1) throw std::runtime_error("request ends");
  return value;
}
inline int64_t read_integer() { return read_number<int64_t>(); }

inline Bytes read_bytes() {
  Bytes bytes(read_integer());
  const auto size = static_cast<std::size_t>(bytes.size());
  if (std::fread(bytes.as(), 1, size, stdin) != size) throw std::runtime_error("request ends");
  return bytes;
}

inline void write_bytes(const void* data, int64_t size) {
  std::fwrite(&size, sizeof size, 1, stdout);
  std::fwrite(data, 1, static_cast<std::size_t>(size), stdout);
}

// Answers requests until there are none. Request 0 is for the instruction set in use; the others go
// to `answer(number)`. Returns the exit status.
template <class Answer>
int serve(const Answer& answer) {
  try {
    int64_t request = 0;
    while (std::fread(&request, sizeof request, 1, stdin) == 1) {
      if (request == 0) {
        const std::string_view name = custom_pypto::isa_name(custom_pypto::current_isa());
        write_bytes(name.data(), static_cast<int64_t>(name.size()));
      } else {
        answer(request);
      }
      std::fflush(stdout);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return 1;
  }
}

}  // namespace driver
