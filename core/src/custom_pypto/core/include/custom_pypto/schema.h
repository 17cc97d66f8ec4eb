// Schemas, parsed at run time: "foo.out(Tensor x, *, int[] k=[1, 2], Tensor(a!)? out=None) -> ()".
#pragma once

#include <custom_pypto/abi.h>

#include <cctype>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN

// A registration that was refused; the text names the op.
class RegistrationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct SchemaType {
  std::string name;   // without alias annotation and list size, SymInt as int: "Tensor?", "int[]"
  std::string alias;  // "a!" of "Tensor(a!)"; empty when there is none

  bool is_mutable() const { return alias.find('!') != std::string::npos; }
};

struct SchemaArgument {
  std::string name;
  SchemaType type;
  bool keyword_only = false;
  bool has_default = false;
  std::string default_value;  // as written
};

struct SchemaReturn {
  std::string name;  // empty when there is none
  SchemaType type;
};

struct Schema {
  std::string name;
  std::string overload;  // empty when there is none
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaReturn> returns;

  // "foo" or "foo.out".
  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
};

namespace detail {

class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : text_(text) {}

  Schema parse() {
    Schema schema;
    schema.name = identifier("an op name");
    if (take(':')) fail("write the op's name without a namespace: it is always custom_pypto");
    if (take('.')) schema.overload = identifier("an overload name");
    parse_arguments(schema);
    if (!take('-') || !take('>')) fail("expected `->` and the returns");
    parse_returns(schema);
    skip_space();
    if (position_ != text_.size()) fail("expected the end");
    return schema;
  }

 private:
  void parse_arguments(Schema& schema) {
    expect('(');
    bool keyword_only = false;
    if (take(')')) return;
    do {
      if (take('*')) {
        if (keyword_only) fail("`*` stands twice");
        keyword_only = true;
        continue;
      }
      SchemaArgument argument;
      argument.type = type();
      argument.name = identifier("an argument name");
      argument.keyword_only = keyword_only;
      if (take('=')) {
        argument.has_default = true;
        argument.default_value = literal();
      }
      schema.arguments.push_back(std::move(argument));
    } while (take(','));
    expect(')');
  }

  void parse_returns(Schema& schema) {
    if (!take('(')) {
      schema.returns.push_back({"", type()});
      return;
    }
    if (take(')')) return;
    do {
      SchemaReturn result;
      result.type = type();
      skip_space();
      if (position_ < text_.size() && is_word(text_[position_])) {
        result.name = identifier("a return name");
      }
      schema.returns.push_back(std::move(result));
    } while (take(','));
    expect(')');
  }

  SchemaType type() {
    SchemaType result;
    result.name = identifier("a type");
    if (result.name == "SymInt") result.name = "int";
    for (;;) {
      if (take('?')) {
        result.name += '?';
      } else if (take('[')) {
        while (position_ < text_.size() &&
               std::isdigit(static_cast<unsigned char>(text_[position_])) != 0) {
          ++position_;
        }
        expect(']');
        result.name += "[]";
      } else if (result.alias.empty() && take('(')) {
        const std::size_t end = text_.find(')', position_);
        if (end == std::string_view::npos) fail("expected `)` after an alias annotation");
        result.alias = std::string(text_.substr(position_, end - position_));
        if (result.alias.empty()) fail("expected an alias annotation such as `a!`");
        position_ = end + 1;
      } else {
        return result;
      }
    }
  }

  // A default value: anything up to the `,` or `)` that ends the argument.
  std::string literal() {
    skip_space();
    const std::size_t start = position_;
    std::size_t depth = 0;
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == '\'' || c == '"') {
        skip_quoted(c);
      } else if (c == '[' || c == '(') {
        ++depth;
      } else if (depth == 0 && (c == ',' || c == ')')) {
        break;
      } else if (c == ']' || c == ')') {
        --depth;
      }
    }
    std::size_t end = position_;
    while (end > start && is_space(text_[end - 1])) --end;
    if (end == start) fail("expected a default value");
    return std::string(text_.substr(start, end - start));
  }

  // Leaves position_ on the closing quote.
  void skip_quoted(char quote) {
    for (++position_; position_ < text_.size() && text_[position_] != quote; ++position_) {
      if (text_[position_] == '\\') ++position_;
    }
    if (position_ >= text_.size()) fail("a quoted default value does not end");
  }

  std::string identifier(const char* what) {
    skip_space();
    const std::size_t start = position_;
    while (position_ < text_.size() && is_word(text_[position_])) ++position_;
    const bool starts_well =
        position_ > start && std::isdigit(static_cast<unsigned char>(text_[start])) == 0;
    if (!starts_well) {
      position_ = start;
      fail(std::string("expected ") + what);
    }
    return std::string(text_.substr(start, position_ - start));
  }

  bool take(char c) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) fail(std::string("expected `") + c + "`");
  }

  void skip_space() {
    while (position_ < text_.size() && is_space(text_[position_])) ++position_;
  }

  static bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }

  [[noreturn]] void fail(const std::string& problem) const {
    const std::string rest(text_.substr(position_, 24));
    throw RegistrationError("schema `" + std::string(text_) + "`: " + problem + " at column " +
                            std::to_string(position_ + 1) +
                            (rest.empty() ? ", where it ends" : ", before `" + rest + "`"));
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace detail

// Throws RegistrationError with the column of the first thing that is no schema.
inline Schema parse_schema(std::string_view text) { return detail::SchemaParser(text).parse(); }

CUSTOM_PYPTO_NAMESPACE_END
