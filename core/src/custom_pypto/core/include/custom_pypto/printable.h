// printable: text of callers and of plugins, made safe to print, as printable.py does in Python.
#pragma once

#include <custom_pypto/abi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

CUSTOM_PYPTO_NAMESPACE_BEGIN

namespace detail {

// Decodes the character at `begin`; `end` becomes the place behind it. -1 for a byte that is no
// UTF-8.
inline int32_t decode(std::string_view text, std::size_t begin, std::size_t& end) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(begin);
  end = begin + 1;
  if (first < 0x80) return static_cast<int32_t>(first);
  const std::size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  if (first < 0xC2 || first > 0xF4 || text.size() - begin <= more) return -1;
  uint32_t code = first & (0x3FU >> more);
  for (std::size_t i = 1; i <= more; ++i) {
    if ((byte(begin + i) & 0xC0U) != 0x80) return -1;
    code = code << 6 | (byte(begin + i) & 0x3FU);
  }
  // Longer than it must be, a surrogate, or beyond Unicode.
  if (code < (more == 1 ? 0x80U : more == 2 ? 0x800U : 0x10000U)) return -1;
  if ((code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return -1;
  end = begin + 1 + more;
  return static_cast<int32_t>(code);
}

// Calls f(character, code point) for each character; -1 stands for a byte that is no UTF-8.
template <typename F>
void for_each_character(std::string_view text, const F& f) {
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    const int32_t code = decode(text, begin, end);
    f(text.substr(begin, end - begin), code);
  }
}

// Whether a character is invisible, and may act on a terminal: the table of printable.py.
inline bool is_unprintable(int32_t code) {
  constexpr int32_t kRanges[][2] = {
      {0x0, 0x1F},        {0x7F, 0x9F},       {0xAD, 0xAD},       {0x600, 0x605},
      {0x61C, 0x61C},     {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},
      {0x8E2, 0x8E2},     {0x180E, 0x180E},   {0x200B, 0x200F},   {0x2028, 0x202E},
      {0x2060, 0x206F},   {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},   {0x110BD, 0x110BD},
      {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
      {0xE0000, 0xE0FFF},
  };
  for (const auto& [first, last] : kRanges) {
    if (code <= last) return code >= first;
  }
  return false;
}

// Appends the escape that Python writes: \n, \x1b, \u202e, \U000e0001.
inline void append_escape(std::string& out, uint32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') {
    out += code == '\t' ? "\\t" : code == '\n' ? "\\n" : "\\r";
    return;
  }
  const int digits = code > 0xFFFF ? 8 : code > 0xFF ? 4 : 2;
  out += digits == 8 ? "\\U" : digits == 4 ? "\\u" : "\\x";
  for (int i = digits - 1; i >= 0; --i) out += "0123456789abcdef"[code >> (4 * i) & 0xFU];
}

}  // namespace detail

// `text` on one line, with escapes for what is invisible and for bytes that are no UTF-8, and
// without its middle when it has more than 4000 characters.
inline CUSTOM_PYPTO_COLD std::string printable(std::string_view text) {
  constexpr std::size_t kHalf = 2000;
  std::size_t count = 0;
  detail::for_each_character(text, [&](std::string_view, int32_t) { ++count; });
  std::string out;
  std::size_t place = 0;
  detail::for_each_character(text, [&](std::string_view character, int32_t code) {
    const std::size_t i = place++;
    if (count > 2 * kHalf && i >= kHalf && i < count - kHalf) {
      if (i > kHalf) return;
      out += " [" + std::to_string(count - 2 * kHalf) + " characters left out] ";
    } else if (code < 0) {
      detail::append_escape(out, static_cast<unsigned char>(character[0]));
    } else if (detail::is_unprintable(code)) {
      detail::append_escape(out, static_cast<uint32_t>(code));
    } else {
      out += character;
    }
  });
  return out;
}

CUSTOM_PYPTO_NAMESPACE_END
