// A kernel's C++ type, and its comparison with the schema. The stable ABI does not compare them: a
// kernel with `double k` under a schema with `int k` would silently read 0.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/schema.h>
#include <custom_pypto/value.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

struct NamedType {
  std::string schema;
  std::string cpp;
};

struct Signature {
  std::vector<NamedType> arguments;
  std::vector<NamedType> returns;
};

template <typename T>
NamedType named_type() {
  return {ValueOf<T>::schema_type(), ValueOf<T>::cpp_type()};
}

template <typename R>
struct ReturnTypes {
  using Tuple = std::tuple<std::remove_cv_t<R>>;
};
template <>
struct ReturnTypes<void> {
  using Tuple = std::tuple<>;
};
template <typename... R>
struct ReturnTypes<std::tuple<R...>> {
  using Tuple = std::tuple<R...>;
};

template <typename Tuple>
struct NamedTypes;
template <typename... T>
struct NamedTypes<std::tuple<T...>> {
  static std::vector<NamedType> list() { return {named_type<T>()...}; }
};

template <typename F>
struct FunctionTraits {
  static_assert(always_false<F>, "custom_pypto: impl<> takes the address of a function");
};
template <typename R, typename... A>
struct FunctionTraits<R (*)(A...)> {
  static_assert(!std::is_reference_v<R>, "custom_pypto: a kernel returns by value");
  using Return = R;
  using Returns = typename ReturnTypes<R>::Tuple;
  using Arguments = std::tuple<A...>;
  static Signature signature() { return {{named_type<A>()...}, NamedTypes<Returns>::list()}; }
};
template <typename R, typename... A>
struct FunctionTraits<R (*)(A...) noexcept> : FunctionTraits<R (*)(A...)> {};

// Why no C++ type fits this schema type, or what to declare for it.
inline std::string advice(const SchemaType& type, const NamedType& kernel) {
  const std::string& name = type.name;
  static const char* const elements[][2] = {
      {"Tensor", "Tensor"},   {"int", "int64_t"},           {"float", "double"}, {"bool", "bool"},
      {"str", "std::string"}, {"ScalarType", "ScalarType"}, {"Device", "Device"}};
  std::size_t end = name.find_first_of("?[");
  std::string cpp;
  for (const auto& each : elements) {
    if (name.compare(0, end, each[0]) == 0) cpp = each[1];
  }
  if (cpp.empty()) {
    return "a `" + name + "` cannot cross torch's stable ABI; use Tensor, int, float, bool, str, " +
           "ScalarType, Device, and lists and optionals of these";
  }
  while (end < name.size()) {
    const bool optional = name[end] == '?';
    cpp = (optional ? "std::optional<" : "std::vector<") + cpp + ">";
    end += optional ? 1 : 2;
  }
  return "declare it `" + cpp + "` in the kernel, or `" + kernel.schema + "` in the schema";
}

inline std::string argument_names(const Schema& schema) {
  std::string names;
  for (const SchemaArgument& each : schema.arguments) {
    names += (names.empty() ? "" : ", ") + each.name;
  }
  return names;
}

inline std::string count_of(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Throws RegistrationError naming op, argument, both types and the dispatch key at the first
// difference.
inline void compare(const Schema& schema, const Signature& kernel, const std::string& key) {
  const std::string op = schema.full_name() + ": ";
  const auto differ = [&](const std::string& where, const SchemaType& type,
                          const NamedType& in_kernel) {
    throw RegistrationError(op + where + " is `" + type.name + "` in the schema but `" +
                            in_kernel.cpp + "` in the " + key + " kernel; " +
                            advice(type, in_kernel));
  };
  if (schema.arguments.size() != kernel.arguments.size()) {
    throw RegistrationError(op + "the schema has " + count_of(schema.arguments.size(), "argument") +
                            " (" + argument_names(schema) + ") but the " + key + " kernel takes " +
                            std::to_string(kernel.arguments.size()));
  }
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    const SchemaArgument& argument = schema.arguments[i];
    if (argument.type.name != kernel.arguments[i].schema) {
      differ("argument " + std::to_string(i + 1) + " '" + argument.name + "'", argument.type,
             kernel.arguments[i]);
    }
  }
  if (schema.returns.size() != kernel.returns.size()) {
    throw RegistrationError(op + "the schema has " + count_of(schema.returns.size(), "return") +
                            " but the " + key + " kernel returns " +
                            count_of(kernel.returns.size(), "value"));
  }
  for (std::size_t i = 0; i < schema.returns.size(); ++i) {
    if (schema.returns[i].type.name != kernel.returns[i].schema) {
      differ("return " + std::to_string(i + 1), schema.returns[i].type, kernel.returns[i]);
    }
  }
}

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
