// The closed list of C++ types that a launch takes, and what each becomes in an aclnn function's C
// signature:
//
//   Tensor                                  aclTensor*, in the storage format it has on the device
//   RawTensor                               aclTensor*, a plain one over the memory
//   std::vector<Tensor>                     aclTensorList*; null when the list is empty
//   std::vector<std::variant<Tensor, RawTensor>>  the same, each element as it says
//   int64_t (and int)                       int64_t
//   double, float                           double, float
//   bool                                    bool
//   std::string, std::string_view, char*    char*, a copy that lives until the launch has run
//   std::vector<int64_t>                    aclIntArray*
//   std::vector<double>                     aclFloatArray*, of floats
//   std::vector<bool>                       aclBoolArray*
//   ScalarType                              aclDataType
//   TypedScalar                             aclScalar*
//   std::optional of these, std::nullopt    null where there is no value
//
// HeaderOnlyArrayRef<T> is taken like std::vector<T>. Any other type is a compile error that names
// the type: no implicit conversion happens on the way to C.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/message.h>
#include <custom_pypto/npu/cann.h>
#include <custom_pypto/npu/storage_format.h>
#include <custom_pypto/npu/torch_npu.h>
#include <custom_pypto/npu/typed_scalar.h>
#include <custom_pypto/placement.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {
namespace detail {

using torch::headeronly::HeaderOnlyArrayRef;

using AnyTensor = std::variant<Tensor, RawTensor>;

// The position of an argument, for messages.
struct ArgumentPlace {
  const std::string& title;  // Kernel::title
  std::size_t number;        // from 1
};

template <typename... Parts>
[[noreturn]] CUSTOM_PYPTO_COLD void fail_argument(const ArgumentPlace& place,
                                                  const Parts&... parts) {
  fail(place.title.c_str(), nullptr, "argument ", place.number, " ", parts...);
}

// An object of CANN's type acl<kind> that `create` made; throws when it made none, or when this
// CANN cannot.
template <typename Create, typename... Inputs>
AclObject create_object(const ArgumentPlace& place, const char* kind, AclDestroy destroy,
                        Create create, const Inputs&... inputs) {
  if (create == nullptr || destroy == nullptr) {
    fail_argument(place, "needs an acl", kind,
                  ", which this CANN does not have; install a newer one");
  }
  void* object = create(inputs...);
  if (object == nullptr) {
    const std::string reason = recent_error();
    fail_argument(place, "could not be made an acl", kind, " (aclCreate", kind,
                  "): ", reason.empty() ? std::string("CANN gives no reason") : reason);
  }
  return AclObject(object, {destroy});
}

inline AclObject describe(const ArgumentPlace& place, const Tensor& tensor) {
  const auto create = [](const void* at_tensor) { return torch_npu().describe(at_tensor); };
  return create_object(place, "Tensor", cann().destroy_tensor, +create,
                       static_cast<const void*>(tensor.get()));
}

inline AclObject describe(const ArgumentPlace& place, const RawTensor& raw) {
  const int64_t elements =
      storage_size(raw.tensor) / static_cast<int64_t>(raw.tensor.element_size());
  const int64_t offset = raw.tensor.storage_offset();
  std::vector<int64_t> strides(raw.sizes.size());
  int64_t count = 1;
  for (std::size_t i = raw.sizes.size(); i-- > 0;) {
    strides[i] = count;
    count *= raw.sizes[i];
  }
  if (offset + count > elements) {
    fail_argument(place, "is to be seen as ", raw.sizes, ", which is more than its memory has");
  }
  constexpr int nd = 2;
  return create_object(place, "Tensor", cann().destroy_tensor, cann().create_tensor,
                       raw.sizes.data(), static_cast<uint64_t>(raw.sizes.size()),
                       acl_data_type(raw.tensor.scalar_type()), strides.data(), offset, nd,
                       &elements, uint64_t{1}, const_cast<void*>(storage_data(raw.tensor)));
}

inline AclObject describe(const ArgumentPlace& place, const AnyTensor& tensor) {
  return std::visit([&](const auto& each) { return describe(place, each); }, tensor);
}

inline AclObject describe(const ArgumentPlace& place, const TypedScalar& scalar) {
  return create_object(place, "Scalar", cann().destroy_scalar, cann().create_scalar, scalar.data(),
                       acl_data_type(scalar.dtype()));
}

template <typename T>
AclObject describe(const ArgumentPlace& place, const HeaderOnlyArrayRef<T>& values) {
  const uint64_t count = values.size();
  if constexpr (std::is_same_v<T, int64_t>) {
    return create_object(place, "IntArray", cann().destroy_int_array, cann().create_int_array,
                         values.data(), count);
  } else if constexpr (std::is_same_v<T, bool>) {
    return create_object(place, "BoolArray", cann().destroy_bool_array, cann().create_bool_array,
                         values.data(), count);
  } else if constexpr (std::is_same_v<T, double>) {
    const std::vector<float> floats(values.begin(), values.end());
    return create_object(place, "FloatArray", cann().destroy_float_array, cann().create_float_array,
                         floats.data(), count);
  } else {  // tensors
    if (values.empty()) return {};
    std::vector<AclObject> owned;
    std::vector<AclTensor> elements;
    owned.reserve(values.size());
    elements.reserve(values.size());
    for (const T& tensor : values) {
      owned.push_back(describe(place, tensor));
      elements.push_back(owned.back().get());
    }
    AclObject list = create_object(place, "TensorList", cann().destroy_tensor_list,
                                   cann().create_tensor_list, elements.data(), count);
    // The list owns them now.
    for (AclObject& element : owned) element.release();
    return list;
  }
}

template <typename T>
AclObject describe(const ArgumentPlace& place, const std::vector<T>& values) {
  if constexpr (std::is_same_v<T, bool>) {
    // std::vector<bool> has no array of bool to refer to.
    const auto array = std::make_unique<bool[]>(values.size());
    std::copy(values.begin(), values.end(), array.get());
    return describe(place, HeaderOnlyArrayRef<bool>(array.get(), values.size()));
  } else {
    return describe(place, HeaderOnlyArrayRef<T>(values.data(), values.size()));
  }
}

template <typename T, typename... Types>
inline constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

// Whether describe() takes a T.
template <typename T>
inline constexpr bool is_acl_object = is_one_of<T, Tensor, RawTensor, AnyTensor, TypedScalar>;
template <typename T>
inline constexpr bool is_acl_object<HeaderOnlyArrayRef<T>> =
    is_one_of<T, Tensor, AnyTensor, int64_t, double, bool>;
template <typename T>
inline constexpr bool is_acl_object<std::vector<T>> = is_acl_object<HeaderOnlyArrayRef<T>>;

// The types of C signatures, as CANN's headers write them. Each is one object, so that an address
// tells types apart.
inline constexpr char kTensorType[] = "aclTensor *";
inline constexpr char kTensorListType[] = "aclTensorList *";
inline constexpr char kScalarType[] = "aclScalar *";
inline constexpr char kIntArrayType[] = "aclIntArray *";
inline constexpr char kFloatArrayType[] = "aclFloatArray *";
inline constexpr char kBoolArrayType[] = "aclBoolArray *";
inline constexpr char kDataTypeType[] = "aclDataType";
inline constexpr char kTextType[] = "char *";
inline constexpr char kInt64Type[] = "int64_t";
inline constexpr char kDoubleType[] = "double";
inline constexpr char kFloatType[] = "float";
inline constexpr char kBoolType[] = "bool";
inline constexpr char kNullType[] = "nullptr";  // of any pointer type

// The type of the object that describe() makes of a T.
template <typename T>
inline constexpr const char* acl_type = kTensorType;
template <>
inline constexpr const char* acl_type<TypedScalar> = kScalarType;
template <typename T>
inline constexpr const char* acl_type<HeaderOnlyArrayRef<T>> = kTensorListType;
template <>
inline constexpr const char* acl_type<HeaderOnlyArrayRef<int64_t>> = kIntArrayType;
template <>
inline constexpr const char* acl_type<HeaderOnlyArrayRef<double>> = kFloatArrayType;
template <>
inline constexpr const char* acl_type<HeaderOnlyArrayRef<bool>> = kBoolArrayType;
template <typename T>
inline constexpr const char* acl_type<std::vector<T>> = acl_type<HeaderOnlyArrayRef<T>>;

// Argument<T> keeps what an argument of type T was turned into until the launch has run. C is its
// type in the signature, c_type the text of that, get() its value there.
template <typename T>
class Argument {
  static_assert(is_acl_object<T>,
                "custom_pypto: a launch takes Tensor, RawTensor, int64_t, double, float, bool, "
                "std::string, ScalarType, TypedScalar, std::vector (or HeaderOnlyArrayRef) of "
                "Tensor, int64_t, double or bool, and std::optional of these; not the T of this "
                "Argument<T>. Cast another integer to int64_t");

 public:
  using C = void*;
  static constexpr const char* c_type = acl_type<T>;
  Argument(const ArgumentPlace& place, const T& value) : object_(describe(place, value)) {}
  explicit Argument(std::nullopt_t) {}
  C get() const noexcept { return object_.get(); }

 private:
  AclObject object_;
};

template <typename T, const char* type>
class Plain {
 public:
  using C = T;
  static constexpr const char* c_type = type;
  Plain(const ArgumentPlace&, T value) : value_(value) {}
  C get() const noexcept { return value_; }

 private:
  T value_;
};

template <>
struct Argument<int64_t> : Plain<int64_t, kInt64Type> {
  using Plain::Plain;
};
template <>
struct Argument<double> : Plain<double, kDoubleType> {
  using Plain::Plain;
};
template <>
struct Argument<float> : Plain<float, kFloatType> {
  using Plain::Plain;
};
template <>
struct Argument<bool> : Plain<bool, kBoolType> {
  using Plain::Plain;
};

template <>
struct Argument<ScalarType> : Plain<int, kDataTypeType> {
  Argument(const ArgumentPlace& place, ScalarType dtype) : Plain(place, acl_data_type(dtype)) {
    if (get() == -1) fail_argument(place, "is the dtype ", dtype, ", which CANN does not have");
  }
};

// An optional argument of any type that this call leaves out.
template <>
struct Argument<std::nullopt_t> : Plain<void*, kNullType> {
  Argument(const ArgumentPlace& place, std::nullopt_t) : Plain(place, nullptr) {}
};

template <>
class Argument<std::string_view> {
 public:
  using C = char*;
  static constexpr const char* c_type = kTextType;
  Argument(const ArgumentPlace&, std::string_view text)
      : text_(std::make_unique<char[]>(text.size() + 1)) {
    text.copy(text_.get(), text.size());
  }
  Argument(const ArgumentPlace& place, const char* text) {
    if (text != nullptr) *this = Argument(place, std::string_view(text));
  }
  explicit Argument(std::nullopt_t) {}
  C get() const noexcept { return text_.get(); }

 private:
  std::unique_ptr<char[]> text_;
};

template <>
struct Argument<std::string> : Argument<std::string_view> {
  using Argument<std::string_view>::Argument;
};

template <typename T>
struct Argument<std::optional<T>> : Argument<T> {
  Argument(const ArgumentPlace& place, const std::optional<T>& value)
      : Argument<T>(value.has_value() ? Argument<T>(place, *value) : make_null(place)) {}

 private:
  static Argument<T> make_null([[maybe_unused]] const ArgumentPlace& place) {
    if constexpr (std::is_pointer_v<typename Argument<T>::C>) {
      return Argument<T>(std::nullopt);
    } else {
      fail_argument(place,
                    "is None, for which aclnn has no number; say in the kernel which number ",
                    "stands for None (value_or)");
    }
  }
};

// The type whose Argument a T becomes: a literal's is std::string_view, an int's int64_t.
template <typename T>
struct ArgumentType {
  using Bare = std::remove_cv_t<std::remove_reference_t<T>>;
  static constexpr bool is_text = is_one_of<std::decay_t<T>, const char*, char*>;
  using type = std::conditional_t<is_text, std::string_view,
                                  std::conditional_t<std::is_same_v<Bare, int>, int64_t, Bare>>;
};
template <typename T>
using ArgumentOf = Argument<typename ArgumentType<T>::type>;

// Calls visit(tensor) for each tensor in an argument.
template <typename T, typename Visit>
void visit_tensors([[maybe_unused]] const T& argument, [[maybe_unused]] const Visit& visit) {
  if constexpr (std::is_same_v<T, Tensor>) {
    visit(argument);
  } else if constexpr (std::is_same_v<T, RawTensor>) {
    visit(argument.tensor);
  } else if constexpr (std::is_same_v<T, AnyTensor>) {
    std::visit([&](const auto& each) { visit_tensors(each, visit); }, argument);
  } else if constexpr (is_one_of<T, std::vector<Tensor>, std::vector<AnyTensor>,
                                 HeaderOnlyArrayRef<Tensor>, HeaderOnlyArrayRef<AnyTensor>>) {
    for (const auto& each : argument) visit_tensors(each, visit);
  }
}
template <typename T, typename Visit>
void visit_tensors(const std::optional<T>& value, const Visit& visit) {
  if (value.has_value()) visit_tensors(*value, visit);
}

}  // namespace detail
}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
