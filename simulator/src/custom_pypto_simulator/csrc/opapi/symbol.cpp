// Symbolic sizes: see symbol.h.
#include "symbol.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "custom_pypto_simulator/need.h"

namespace custom_pypto_simulator {
namespace {

std::vector<std::string> sizes_in(const std::string& meta) {
  const auto begin = meta.find("torch.Size([");
  need(begin != std::string::npos, "no shape in '", meta, "'");
  const auto first = begin + std::string("torch.Size([").size();
  const std::string inside = meta.substr(first, meta.find(']', first) - first);
  std::vector<std::string> sizes;
  std::istringstream text(inside);
  for (std::string size; std::getline(text, size, ',');) {
    size.erase(std::remove(size.begin(), size.end(), ' '), size.end());
    if (!size.empty()) sizes.push_back(size);
  }
  return sizes;
}

bool is_word(unsigned char c) { return std::isalnum(c) || c == '_'; }

bool is_name(const std::string& text) {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), is_word);
}

// sum := product (("+" | "-") product)*; product := atom (("*" | "//") atom)*
class Expression {
 public:
  Expression(const std::string& text, const std::map<std::string, int64_t>& values)
      : text_(text), values_(values) {}

  int64_t value() {
    const int64_t result = sum();
    if (at_ != text_.size()) fail();
    return result;
  }

 private:
  [[noreturn]] void fail() const {
    refuse("the size '", text_, "' cannot be computed from the inputs");
  }

  bool take(const char* token) {
    const std::string wanted = token;
    if (text_.compare(at_, wanted.size(), wanted) != 0) return false;
    at_ += wanted.size();
    return true;
  }

  int64_t sum() {
    int64_t result = product();
    for (;;) {
      if (take("+")) {
        result += product();
      } else if (take("-")) {
        result -= product();
      } else {
        return result;
      }
    }
  }

  int64_t product() {
    int64_t result = atom();
    for (;;) {
      if (take("//")) {
        const int64_t divisor = atom();
        if (divisor == 0) fail();
        result /= divisor;
      } else if (take("*")) {
        result *= atom();
      } else {
        return result;
      }
    }
  }

  int64_t atom() {
    if (take("-")) return -atom();
    if (take("(")) {
      const int64_t result = sum();
      if (!take(")")) fail();
      return result;
    }
    std::string word;
    while (at_ < text_.size() && is_word(text_[at_])) word += text_[at_++];
    if (word.empty()) fail();
    if (std::isdigit(static_cast<unsigned char>(word[0]))) return std::stoll(word);
    const auto found = values_.find(word);
    if (found == values_.end()) fail();
    return found->second;
  }

  const std::string& text_;
  const std::map<std::string, int64_t>& values_;
  size_t at_ = 0;
};

}  // namespace

void Symbols::bind(const std::string& meta, const std::vector<int64_t>& shape) {
  const auto sizes = sizes_in(meta);
  for (size_t i = 0; i < sizes.size() && i < shape.size(); ++i) {
    if (is_name(sizes[i])) values_[sizes[i]] = shape[i];
  }
}

void Symbols::bind_value(const std::string& meta, int64_t value) {
  const auto begin = meta.rfind('(');
  const std::string name = meta.substr(begin + 1, meta.rfind(')') - begin - 1);
  if (is_name(name)) values_[name] = value;
}

std::vector<int64_t> Symbols::shape(const std::string& meta) const {
  std::vector<int64_t> result;
  for (const auto& size : sizes_in(meta)) result.push_back(Expression(size, values_).value());
  return result;
}

}  // namespace custom_pypto_simulator
