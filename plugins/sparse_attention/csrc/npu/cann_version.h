// The version of this machine's CANN. Some aclnn functions have had other parameters under the same
// name, which C cannot tell: called with the wrong ones they read garbage, or crash.
#pragma once

#include <custom_pypto/c_interface.h>
#include <strings.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace custom_pypto_sparse_attention::npu {

// Ordered as CANN's releases are: 8.3.RC1.alpha002 < 8.3.RC1 < 8.5.0.alpha003 < 8.5.0-rc.1 < 8.5.0.
class CannVersion {
 public:
  // Null for a text of another form.
  static std::optional<CannVersion> parse(const std::string& text) {
    CannVersion version;
    std::size_t parts = 0;
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      const bool is_number = text[begin] >= '0' && text[begin] <= '9';
      end = is_number ? text.find_first_not_of("0123456789", begin)
                      : text.find_first_of("0123456789.-", begin);
      const std::string part = text.substr(begin, end - begin);
      if (parts == version.parts_.size() || part.size() > 9) return std::nullopt;
      version.parts_[parts] = is_number ? std::stoll(part) : stage_of(part);
      if (version.parts_[parts++] == kUnknown) return std::nullopt;
      end = begin + part.size();
      if (end < text.size() && (text[end] == '.' || text[end] == '-')) ++end;
    }
    if (parts < 3) return std::nullopt;
    return version;
  }

  bool operator<(const CannVersion& other) const noexcept { return parts_ < other.parts_; }

 private:
  static constexpr int64_t kUnknown = -4;

  // What comes before a release is less than 0, which stands for no further part.
  static int64_t stage_of(const std::string& name) {
    if (strcasecmp(name.c_str(), "alpha") == 0) return -3;
    if (strcasecmp(name.c_str(), "beta") == 0) return -2;
    return strcasecmp(name.c_str(), "rc") == 0 ? -1 : kUnknown;
  }

  std::array<int64_t, 7> parts_{};
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

}  // namespace custom_pypto_sparse_attention::npu
