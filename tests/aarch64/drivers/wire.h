// What a test asks of a driver, read from standard input, and the answers, written to standard
// output. A request is a number that names it, then integers and numbers of 8 bytes, and arrays,
// which begin with their size in bytes. An answer is arrays.
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

// Answers requests until there are none. Number 0 asks for the instruction set in use; the others
// are answered by `answer(number)`. Returns the status to exit with.
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
