// Checks of a kernel's arguments. They allocate nothing when they pass; when they do not, they
// throw std::runtime_error (in Python RuntimeError) that names op and argument, says what is
// allowed and what was given: "my_op: argument 'query' must be 3-D or 4-D, got 2-D [5, 7]".
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/placement.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// A tensor argument under check. Borrows all three: for use within the kernel only. Each check
// returns the same Arg, so that they chain.
//   const Arg q("my_op", "query", query);
//   q.rank({3, 4}).dtype({ScalarType::Half, ScalarType::BFloat16}).contiguous();
class Arg {
 public:
  Arg(const char* op, const char* name, const Tensor& tensor)
      : op_(op), name_(name), tensor_(tensor) {}
  Arg(const char* op, const char* name, Tensor&& temporary) = delete;

  const char* op() const noexcept { return op_; }
  const char* name() const noexcept { return name_; }
  const Tensor& tensor() const noexcept { return tensor_; }

  // The number of dimensions is `expected`, or one of `allowed`.
  const Arg& rank(int64_t expected) const { return rank({expected}); }
  const Arg& rank(std::initializer_list<int64_t> allowed) const {
    const int64_t actual = tensor_.dim();
    if (CUSTOM_PYPTO_UNLIKELY(std::find(allowed.begin(), allowed.end(), actual) == allowed.end())) {
      fail_rank(allowed, actual);
    }
    return *this;
  }

  // The number of dimensions is `expected`; `meaning` says why, e.g. "[T, N, D] for layout 'TND'".
  const Arg& rank(int64_t expected, const char* meaning) const {
    const int64_t actual = tensor_.dim();
    if (CUSTOM_PYPTO_UNLIKELY(actual != expected)) {
      fail(op_, name_, "must be ", expected, "-D (", meaning, "), got ", actual, "-D ",
           tensor_.sizes());
    }
    return *this;
  }

  // The dtype is `expected`, or one of `allowed`.
  const Arg& dtype(ScalarType expected) const { return dtype({expected}); }
  const Arg& dtype(std::initializer_list<ScalarType> allowed) const {
    const ScalarType actual = tensor_.scalar_type();
    if (CUSTOM_PYPTO_UNLIKELY(std::find(allowed.begin(), allowed.end(), actual) == allowed.end())) {
      fail_dtype(allowed, actual);
    }
    return *this;
  }

  const Arg& same_dtype(const Arg& other) const {
    if (CUSTOM_PYPTO_UNLIKELY(detail::dtype_code(tensor_) != detail::dtype_code(other.tensor_))) {
      fail(op_, name_, "must have the dtype of '", other.name_, "' (", other.tensor_.scalar_type(),
           "), got ", tensor_.scalar_type());
    }
    return *this;
  }

  const Arg& same_device(const Arg& other) const {
    if (CUSTOM_PYPTO_UNLIKELY(
            !(detail::placement_of(tensor_) == detail::placement_of(other.tensor_)))) {
      fail(op_, name_, "must be on the device of '", other.name_, "' (", other.tensor_.device(),
           "), got ", tensor_.device());
    }
    return *this;
  }

  const Arg& same_shape(const Arg& other) const {
    if (CUSTOM_PYPTO_UNLIKELY(!tensor_.sizes().equals(other.tensor_.sizes()))) {
      fail(op_, name_, "must have the shape of '", other.name_, "' ", other.tensor_.sizes(),
           ", got ", tensor_.sizes());
    }
    return *this;
  }

  // Dimension `dim` (negative: from the end) has size `expected`; `meaning` says what that is, e.g.
  // "the head size of query".
  const Arg& size(int64_t dim, int64_t expected, const char* meaning) const {
    const auto sizes = tensor_.sizes();
    const auto rank = static_cast<int64_t>(sizes.size());
    const int64_t index = dim < 0 ? dim + rank : dim;
    if (CUSTOM_PYPTO_UNLIKELY(index < 0 || index >= rank)) {
      fail(op_, name_, "must have a dimension ", dim, " (", meaning, "), got ", rank, "-D ", sizes);
    }
    if (CUSTOM_PYPTO_UNLIKELY(sizes.data()[index] != expected)) {
      fail(op_, name_, "must have size ", expected, " in dimension ", dim, " (", meaning, "), got ",
           sizes.data()[index], " in ", sizes);
    }
    return *this;
  }

  // The shape is `expected`, in which -1 stands for any size.
  const Arg& shape(std::initializer_list<int64_t> expected) const {
    const auto sizes = tensor_.sizes();
    const bool fits =
        sizes.size() == expected.size() &&
        std::equal(expected.begin(), expected.end(), sizes.begin(),
                   [](int64_t want, int64_t have) { return want == -1 || want == have; });
    if (CUSTOM_PYPTO_UNLIKELY(!fits)) fail_shape(expected);
    return *this;
  }

  const Arg& contiguous() const {
    if (CUSTOM_PYPTO_UNLIKELY(!tensor_.is_contiguous())) {
      fail(op_, name_, "must be contiguous, got shape ", tensor_.sizes(), " with strides ",
           tensor_.strides());
    }
    return *this;
  }

 private:
  [[noreturn]] CUSTOM_PYPTO_COLD void fail_rank(std::initializer_list<int64_t> allowed,
                                                int64_t actual) const {
    std::ostringstream choices;
    detail::print_choices(choices, allowed.begin(), allowed.end(),
                          [&](int64_t each) { choices << each << "-D"; });
    fail(op_, name_, "must be ", choices.str(), ", got ", actual, "-D ", tensor_.sizes());
  }

  [[noreturn]] CUSTOM_PYPTO_COLD void fail_dtype(std::initializer_list<ScalarType> allowed,
                                                 ScalarType actual) const {
    std::ostringstream choices;
    detail::print_choices(choices, allowed.begin(), allowed.end(),
                          [&](ScalarType each) { choices << dtype_name(each); });
    fail(op_, name_, "must be ", choices.str(), ", got ", actual);
  }

  [[noreturn]] CUSTOM_PYPTO_COLD void fail_shape(std::initializer_list<int64_t> expected) const {
    std::ostringstream text;
    for (const int64_t& size : expected) {
      if (&size != expected.begin()) text << ", ";
      if (size == -1) {
        text << '*';
      } else {
        text << size;
      }
    }
    fail(op_, name_, "must have shape [", text.str(), "], got ", tensor_.sizes());
  }

  const char* op_;
  const char* name_;
  const Tensor& tensor_;
};

// A number or string argument under check: ScalarArg("my_op", "count", count).at_least(1).
template <typename T>
class ScalarArg {
 public:
  ScalarArg(const char* op, const char* name, T value) : op_(op), name_(name), value_(value) {}

  const ScalarArg& at_least(T low) const {
    if (CUSTOM_PYPTO_UNLIKELY(!(value_ >= low))) {
      fail(op_, name_, "must be at least ", low, ", got ", value_);
    }
    return *this;
  }

  const ScalarArg& at_most(T high) const {
    if (CUSTOM_PYPTO_UNLIKELY(!(value_ <= high))) {
      fail(op_, name_, "must be at most ", high, ", got ", value_);
    }
    return *this;
  }

  // low <= value <= high.
  const ScalarArg& in_range(T low, T high) const {
    if (CUSTOM_PYPTO_UNLIKELY(!(value_ >= low && value_ <= high))) {
      fail(op_, name_, "must be between ", low, " and ", high, ", got ", value_);
    }
    return *this;
  }

  const ScalarArg& one_of(std::initializer_list<T> allowed) const {
    if (CUSTOM_PYPTO_UNLIKELY(std::find(allowed.begin(), allowed.end(), value_) == allowed.end())) {
      fail_choice(allowed);
    }
    return *this;
  }

 private:
  static constexpr const char* quote() { return std::is_same_v<T, std::string_view> ? "'" : ""; }

  [[noreturn]] CUSTOM_PYPTO_COLD void fail_choice(std::initializer_list<T> allowed) const {
    std::ostringstream choices;
    detail::print_choices(choices, allowed.begin(), allowed.end(), [&](const T& each) {
      choices << quote();
      detail::print(choices, each);
      choices << quote();
    });
    fail(op_, name_, "must be ", choices.str(), ", got ", quote(), value_, quote());
  }

  const char* op_;
  const char* name_;
  T value_;
};

ScalarArg(const char*, const char*, int) -> ScalarArg<int64_t>;
ScalarArg(const char*, const char*, float) -> ScalarArg<double>;
ScalarArg(const char*, const char*, const char*) -> ScalarArg<std::string_view>;
ScalarArg(const char*, const char*, std::string) -> ScalarArg<std::string_view>;

CUSTOM_PYPTO_NAMESPACE_END
