// The closed list of C++ types that kernels take and return, and how each crosses the C interface.
//
// Value<T> has: Storage, which owns the value while a kernel runs; from_stack(), which converts an
// element of libtorch's stack to a Storage and takes over its ownership; view(), the T that the
// kernel sees; release(), which frees an element that was not converted; and to_stack(), which
// converts a T to an element that libtorch owns.
//
// torch::stable::detail::to and from are not used for strings (to<std::string> leaks one allocation
// per call in torch 2.10 to 2.13), nor for lists and optionals of them.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/message.h>
#include <torch/csrc/stable/stableivalue_conversions.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

using torch::headeronly::HeaderOnlyArrayRef;

template <typename T>
inline constexpr bool always_false = false;

template <typename T>
struct Value {
  static_assert(always_false<T>,
                "custom_pypto: a kernel takes and returns Tensor, int64_t, double, bool, "
                "std::string(_view), ScalarType, Device, std::vector of these, and std::optional "
                "of these; not the T of this Value<T>");
};

// Types that fit a stack element and own nothing.
template <typename T>
struct PlainValue {
  using Storage = T;
  static T from_stack(StableIValue raw) { return torch::stable::detail::to<T>(raw); }
  static T& view(T& stored) noexcept { return stored; }
  static void release(StableIValue) noexcept {}
  static StableIValue to_stack(const T& value) { return torch::stable::detail::from(value); }
};

template <>
struct Value<int64_t> : PlainValue<int64_t> {};

template <>
struct Value<double> : PlainValue<double> {};

template <>
struct Value<bool> : PlainValue<bool> {};

template <>
struct Value<ScalarType> : PlainValue<ScalarType> {};

template <>
struct Value<Device> : PlainValue<Device> {};

template <>
struct Value<Tensor> {
  using Storage = Tensor;
  static AtenTensorHandle handle(StableIValue raw) {
    return torch::stable::detail::to<AtenTensorHandle>(raw);
  }
  static Tensor from_stack(StableIValue raw) { return Tensor(handle(raw)); }
  static Tensor& view(Tensor& stored) noexcept { return stored; }
  static void release(StableIValue raw) noexcept { aoti_torch_delete_tensor_object(handle(raw)); }
  static StableIValue to_stack(const Tensor& value) { return torch::stable::detail::from(value); }
};

// A string that libtorch allocated, read in place.
class TorchString {
 public:
  explicit TorchString(StringHandle handle) : handle_(handle) {
    const char* data = nullptr;
    std::size_t length = 0;
    expect_success(torch_string_c_str(handle, &data), "torch_string_c_str");
    expect_success(torch_string_length(handle, &length), "torch_string_length");
    text_ = std::string_view(data, length);
  }
  const std::string_view& text() const noexcept { return text_; }

 private:
  std::unique_ptr<StringOpaque, Deleter<torch_delete_string>> handle_;
  std::string_view text_;
};

template <>
struct Value<std::string_view> {
  using Storage = TorchString;
  static StringHandle handle(StableIValue raw) {
    return torch::stable::detail::to<StringHandle>(raw);
  }
  static TorchString from_stack(StableIValue raw) { return TorchString(handle(raw)); }
  static std::string_view view(const TorchString& stored) noexcept { return stored.text(); }
  static void release(StableIValue raw) noexcept { torch_delete_string(handle(raw)); }
  static StableIValue to_stack(std::string_view value) {
    StringHandle result = nullptr;
    expect_success(torch_new_string_handle(value.data(), value.size(), &result),
                   "torch_new_string_handle");
    return torch::stable::detail::from(result);
  }
};

template <>
struct Value<std::string> {
  using Storage = std::string;
  static std::string from_stack(StableIValue raw) {
    return std::string(Value<std::string_view>::from_stack(raw).text());
  }
  static std::string& view(std::string& stored) noexcept { return stored; }
  static void release(StableIValue raw) noexcept { Value<std::string_view>::release(raw); }
  static StableIValue to_stack(const std::string& value) {
    return Value<std::string_view>::to_stack(value);
  }
};

// The heap cell of an optional that has a value.
struct DeleteCell {
  void operator()(StableIValue* cell) const noexcept {
#if defined(TORCH_VERSION_2_13_0) && TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
    torch_delete_stable_ivalue(cell);
#else
    // The contract of torch's own headers before 2.13: libtorch's new, the extension's delete.
    std::default_delete<StableIValue>()(cell);
#endif
  }
};
using Cell = std::unique_ptr<StableIValue, DeleteCell>;

inline Cell new_cell() {
#if defined(TORCH_VERSION_2_13_0) && TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
  StableIValue* cell = nullptr;
  expect_success(torch_new_stable_ivalue(&cell), "torch_new_stable_ivalue");
  return Cell(cell);
#else
  return Cell(std::make_unique<StableIValue>().release());
#endif
}

template <typename T>
struct Value<std::optional<T>> {
  using Inner = Value<T>;
  using Storage = std::optional<typename Inner::Storage>;

  static Storage from_stack(StableIValue raw) {
    const Cell cell(cell_of(raw));
    if (cell == nullptr) return std::nullopt;
    return Storage(Inner::from_stack(*cell));
  }

  static decltype(auto) view(Storage& stored) noexcept {
    if constexpr (std::is_same_v<typename Inner::Storage, T>) {
      return (stored);
    } else {
      return stored.has_value() ? std::optional<T>(Inner::view(*stored)) : std::nullopt;
    }
  }

  static void release(StableIValue raw) noexcept {
    const Cell cell(cell_of(raw));
    if (cell != nullptr) Inner::release(*cell);
  }

  static StableIValue to_stack(const std::optional<T>& value) {
    if (!value.has_value()) return torch::stable::detail::from(std::nullopt);
    Cell cell = new_cell();
    *cell = Inner::to_stack(*value);
    return torch::stable::detail::from(cell.release());
  }

 private:
  static StableIValue* cell_of(StableIValue raw) {
    return torch::stable::detail::to<StableIValue*>(raw);
  }
};

// Owns a list that libtorch made, and its elements until they are converted.
template <typename Element>
class OwnedList {
 public:
  explicit OwnedList(StableIValue raw) : handle_(torch::stable::detail::to<StableListHandle>(raw)) {
    torch_list_size(handle_, &size_);
  }
  OwnedList(const OwnedList&) = delete;
  OwnedList& operator=(const OwnedList&) = delete;
  ~OwnedList() {
    for (; next_ < size_; ++next_) Element::release(at(next_));
    torch_delete_list(handle_);
  }

  std::size_t size() const noexcept { return size_; }
  typename Element::Storage next() { return Element::from_stack(at(next_++)); }

 private:
  StableIValue at(std::size_t index) const noexcept {
    StableIValue element = 0;
    torch_list_get_item(handle_, index, &element);
    return element;
  }

  StableListHandle handle_;
  std::size_t size_ = 0;
  std::size_t next_ = 0;
};

// Builds a list for libtorch; frees its elements unless released.
template <typename Element>
class ListBuilder {
 public:
  explicit ListBuilder(std::size_t size) {
    expect_success(torch_new_list_reserve_size(size, &handle_), "torch_new_list_reserve_size");
  }
  ListBuilder(const ListBuilder&) = delete;
  ListBuilder& operator=(const ListBuilder&) = delete;
  ~ListBuilder() {
    if (handle_ != nullptr) OwnedList<Element>(torch::stable::detail::from(handle_));
  }

  template <typename T>
  void push_back(const T& value) {
    const StableIValue raw = Element::to_stack(value);
    if (CUSTOM_PYPTO_UNLIKELY(torch_list_push_back(handle_, raw) != AOTI_TORCH_SUCCESS)) {
      Element::release(raw);
      throw_torch_error("torch_list_push_back");
    }
  }
  StableIValue release() { return torch::stable::detail::from(std::exchange(handle_, nullptr)); }

 private:
  StableListHandle handle_ = nullptr;
};

template <typename T, typename List>
StableIValue list_to_stack(const List& values) {
  ListBuilder<Value<T>> list(values.size());
  for (const auto& each : values) list.push_back(static_cast<const T&>(each));
  return list.release();
}

template <typename T>
struct Value<std::vector<T>> {
  using Element = Value<T>;
  using Storage = std::vector<T>;
  static_assert(std::is_same_v<typename Element::Storage, T>,
                "custom_pypto: a list cannot hold views; use std::vector<std::string>");

  static Storage from_stack(StableIValue raw) {
    OwnedList<Element> list(raw);
    Storage values;
    values.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) values.push_back(list.next());
    return values;
  }
  static Storage& view(Storage& stored) noexcept { return stored; }
  static void release(StableIValue raw) noexcept { OwnedList<Element>{raw}; }
  static StableIValue to_stack(const Storage& values) { return list_to_stack<T>(values); }
};

// Only call_op sends one; kernels take and return std::vector.
template <typename T>
struct Value<HeaderOnlyArrayRef<T>> {
  using Storage = std::vector<T>;
  static void release(StableIValue raw) noexcept { OwnedList<Value<T>>{raw}; }
  static StableIValue to_stack(const HeaderOnlyArrayRef<T>& values) {
    return list_to_stack<T>(values);
  }
};

template <typename T>
using ValueOf = Value<std::remove_cv_t<std::remove_reference_t<T>>>;

// Frees stack elements when a conversion fails: arguments after the one that failed, results before
// it.
using Release = void (*)(StableIValue) noexcept;

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
