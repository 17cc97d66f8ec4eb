// The version of this machine's CANN. Some aclnn functions have had other parameters under the same
// name, which C cannot tell: called with the wrong ones they read garbage, or crash.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/loaded_library.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// Ordered as CANN's releases are: 8.3.RC1.alpha002 < 8.3.RC1 < 8.5.0.alpha003 < 8.5.0-rc.1 < 8.5.0.
class CannVersion {
 public:
  // Null for a text of another form.
  static std::optional<CannVersion> parse(std::string_view text) {
    const std::vector<std::string> tokens = split(text);
    CannVersion version;
    std::size_t next = 0;
    // Release candidates before 8.5 have no third number.
    for (; next < tokens.size() && next < 3 && is_number(tokens[next]); ++next) {
      version.key_[next] = number(tokens[next]);
    }
    if (next < 2 || tokens.size() < 3) return std::nullopt;
    for (std::size_t place = 3; next < tokens.size(); place += 2) {
      if (place >= version.key_.size()) return std::nullopt;
      const std::size_t letters = tokens[next].find_first_of("0123456789");
      const int64_t stage = stage_of(tokens[next].substr(0, letters));
      if (stage == kReleased) return std::nullopt;
      std::string count = letters == std::string::npos ? "" : tokens[next].substr(letters);
      ++next;
      if (count.empty() && next < tokens.size() && is_number(tokens[next])) count = tokens[next++];
      if (!count.empty() && !is_number(count)) return std::nullopt;
      version.key_[place] = stage;
      version.key_[place + 1] = count.empty() ? 0 : number(count);
    }
    return version;
  }

  bool operator<(const CannVersion& other) const noexcept { return key_ < other.key_; }

 private:
  static constexpr int64_t kReleased = 3;

  static int64_t stage_of(std::string_view name) {
    constexpr std::array<std::string_view, kReleased> names{"alpha", "beta", "rc"};
    std::size_t stage = 0;
    while (stage < names.size() && names[stage] != name) ++stage;
    return static_cast<int64_t>(stage);
  }

  // Splits "8.5.0-rc.1" and "8.5.0.RC1", in lower case.
  static std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> tokens(1);
    for (const char c : text) {
      if (c == '.' || c == '-') {
        tokens.emplace_back();
      } else {
        tokens.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      }
    }
    return tokens;
  }

  // Whether the token is digits that fit an int64_t.
  static bool is_number(const std::string& token) {
    return !token.empty() && token.size() < 10 &&
           token.find_first_not_of("0123456789") == std::string::npos;
  }
  static int64_t number(const std::string& token) { return std::stoll(token); }

  // Major, minor and patch; a stage and its number; for "8.3.RC1.alpha002" the stage within.
  std::array<int64_t, 7> key_{0, 0, 0, kReleased, 0, kReleased, 0};
};

namespace detail {

// CANN's aclCANNPackageVersion, and the function that fills it for the package "CANN". CANN before
// 8.1 does not have it.
struct PackageVersion {
  char version[128];
  char major_minor_release_patch[4][64];
  char reserved[128];
};
using GetPackageVersion = int (*)(int package, PackageVersion* version);

inline std::optional<CannVersion> find_cann_version() {
  constexpr int kCannPackage = 0;
  GetPackageVersion get = nullptr;
  custom_pypto::detail::find_loaded("libascendcl.so", "aclsysGetCANNVersion", get);
  PackageVersion found{};
  if (get == nullptr || get(kCannPackage, &found) != 0) return std::nullopt;
  found.version[sizeof found.version - 1] = '\0';
  return CannVersion::parse(found.version);
}

}  // namespace detail

// Null when this CANN reports no version, or one that `CannVersion::parse` cannot read. Read once.
inline const std::optional<CannVersion>& cann_version() {
  static const std::optional<CannVersion> version = detail::find_cann_version();
  return version;
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
