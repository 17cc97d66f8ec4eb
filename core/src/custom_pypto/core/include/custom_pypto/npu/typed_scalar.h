// A number that an aclnn op takes as aclScalar. Torch's stable ABI has no Scalar, so the kernel
// names the dtype.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/dtype.h>
#include <custom_pypto/message.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// TypedScalar(2.5) is a float64, TypedScalar(1) an int64, TypedScalar(true) a bool, as torch makes
// them of Python's numbers; TypedScalar(0.5, ScalarType::Half) is the number nearest to 0.5.
class TypedScalar {
 public:
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  explicit TypedScalar(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      store(value);
    } else if constexpr (std::is_integral_v<T>) {
      store(static_cast<int64_t>(value));
    } else {
      store(static_cast<double>(value));
    }
  }

  // Throws when no such number can be made of `value`.
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  TypedScalar(T value, ScalarType dtype) {
    visit_dtype<double, float, Half, BFloat16, int64_t, int32_t, int16_t, int8_t, uint8_t, bool>(
        "TypedScalar", "dtype", dtype, [&](auto tag) {
          using Element = typename decltype(tag)::type;
          if constexpr (std::is_arithmetic_v<Element>) {
            store(static_cast<Element>(value));
          } else {
            store(Element(static_cast<float>(value)));
          }
        });
  }

  ScalarType dtype() const noexcept { return dtype_; }
  const void* data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return size_; }

 private:
  template <typename Element>
  void store(Element value) {
    dtype_ = dtype_of<Element>;
    size_ = sizeof value;
    std::memcpy(bytes_.data(), &value, sizeof value);
  }

  ScalarType dtype_ = ScalarType::Double;
  std::size_t size_ = 0;
  alignas(8) std::array<unsigned char, 8> bytes_{};
};

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
