// One NPU kernel, and the search for it: of the two-phase aclnn interface, or launched directly.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/kernel_library.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

struct Kernel {
  std::string symbol;   // "aclnnAdd"
  std::string title;    // how messages begin: "add_custom: aclnnAdd"
  std::string library;  // its path
  Origin origin;
  void* prepare;  // aclnnAddGetWorkspaceSize; null of a kernel that is launched directly
  void* run;      // aclnnAdd

  // The launcher of a kernel that is launched directly (direct_launch.h), which is an F.
  template <typename F>
  F* launcher() const noexcept {
    return reinterpret_cast<F*>(run);
  }

  bool is(std::string_view name) const noexcept { return symbol == name; }
};

// Whether a symbol is of the two-phase interface: "aclnn..". Others are launched directly.
inline bool has_two_phases(std::string_view symbol) noexcept {
  return symbol.substr(0, 5) == "aclnn";
}

namespace detail {

// Of a library that the loader found by its name.
inline std::string path_of(const void* address, const std::string& name) {
  Dl_info info{};
  const bool found = dladdr(address, &info) != 0 && info.dli_fname != nullptr;
  return found ? info.dli_fname : name;
}

// A library that is open, or what is wrong with it.
struct OpenLibrary {
  void* handle = nullptr;
  std::string problem;
};

inline OpenLibrary open_library(const KernelLibrary& library) {
  if (library.name.empty()) return {nullptr, library.remark};
  if (library.name.find('/') != std::string::npos) {
    if (access(library.name.c_str(), F_OK) != 0) return {nullptr, "not there"};
    const std::string foreign = foreign_owner(library.name);
    if (!foreign.empty()) return {nullptr, foreign};
  }
  // Never closed: kernels stay in use until the process ends.
  void* handle = dlopen(library.name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) return {handle, ""};
  const char* error = dlerror();
  std::string reason = error == nullptr ? "?" : error;
  // Who lists the reason names the library.
  if (reason.compare(0, library.name.size() + 2, library.name + ": ") == 0) {
    reason.erase(0, library.name.size() + 2);
  }
  return {nullptr, "cannot be loaded: " + reason};
}

// The libraries of a search; each is opened when its turn comes, so that those after the one that
// is used stay untouched.
class OpenLibraries {
 public:
  std::size_t size() const noexcept { return libraries_.size(); }
  const KernelLibrary& library(std::size_t index) const { return libraries_[index]; }

  OpenLibrary& open(std::size_t index) {
    std::optional<OpenLibrary>& opened = opened_[index];
    if (!opened.has_value()) opened = open_library(libraries_[index]);
    return *opened;
  }

  // "CANN: libopapi.so: has none of these": a line for each place, and one for neighbours of which
  // the same is to be said. What was not opened is not there.
  std::vector<std::string> places() const {
    std::vector<std::string> lines;
    for (std::size_t i = 0, next = 0; i < size(); i = next) {
      next = i + 1;
      if (!opened_[i].has_value()) continue;
      std::string names = libraries_[i].name;
      for (; next < size() && is_same_finding(i, next); ++next) {
        names += ", " + libraries_[next].name;
      }
      const std::string& problem = opened_[i]->problem;
      lines.push_back(std::string(origin_name(libraries_[i].origin)) + ": " +
                      (names.empty() ? "" : names + ": ") +
                      (problem.empty() ? "has none of these" : problem));
    }
    return lines;
  }

 private:
  bool is_same_finding(std::size_t a, std::size_t b) const {
    return opened_[b].has_value() && libraries_[a].origin == libraries_[b].origin &&
           !libraries_[a].name.empty() && !libraries_[b].name.empty() &&
           opened_[a]->problem == opened_[b]->problem;
  }

  std::vector<KernelLibrary> libraries_ = kernel_libraries();
  std::vector<std::optional<OpenLibrary>> opened_{libraries_.size()};
};

}  // namespace detail

// What a search found; if nothing, every place it looked at and what is there; else what has a
// preferred kernel, for another NPU.
struct KernelSearch {
  std::optional<Kernel> kernel;
  std::vector<std::string> searched;
};

// The first of `symbols` that any library has; of one symbol, the first library that has it, with
// both its phases if there are two. `op` may be "".
inline KernelSearch search_kernel(const std::string& op, const std::vector<const char*>& symbols) {
  detail::OpenLibraries libraries;
  std::vector<std::string> unfit;
  for (const char* symbol : symbols) {
    const std::string phase_1 = std::string(symbol) + "GetWorkspaceSize";
    for (std::size_t i = 0; i < libraries.size(); ++i) {
      const KernelLibrary& library = libraries.library(i);
      if (library.has_launchers == has_two_phases(symbol)) continue;
      detail::OpenLibrary& opened = libraries.open(i);
      if (library.is_for_another_npu) unfit.push_back(library.remark);
      if (opened.handle == nullptr) continue;
      void* run = dlsym(opened.handle, symbol);
      void* prepare = dlsym(opened.handle, phase_1.c_str());
      if (run != nullptr && (prepare != nullptr || !has_two_phases(symbol))) {
        const std::string title = op.empty() ? symbol : op + ": " + symbol;
        const std::string path = detail::path_of(run, library.name);
        return {Kernel{symbol, title, path, library.origin, prepare, run}, unfit};
      }
      if (run != nullptr || prepare != nullptr) {
        opened.problem = "has " + (run == nullptr ? phase_1 : symbol) + " but no " +
                         (run == nullptr ? symbol : phase_1);
      }
    }
  }
  return {std::nullopt, libraries.places()};
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
