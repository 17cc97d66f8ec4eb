// The search for an NPU kernel in the libraries of this machine.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/loaded_library.h>
#include <custom_pypto/npu/kernel_library.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// With which types launches of a kernel agree (kernel_report.h). A copy has not been compared.
class ComparedTypes {
 public:
  ComparedTypes() = default;
  ComparedTypes(const ComparedTypes&) noexcept {}
  ComparedTypes& operator=(const ComparedTypes&) = delete;

  bool are(const void* types) const noexcept {
    return types_.load(std::memory_order_relaxed) == types;
  }
  void set(const void* types) const noexcept { types_.store(types, std::memory_order_relaxed); }

 private:
  mutable std::atomic<const void*> types_{nullptr};
};

struct Kernel {
  std::string symbol;   // "aclnnAdd"
  std::string title;    // how messages begin: "add_custom: aclnnAdd"
  std::string library;  // its path
  Origin origin;
  void* prepare;  // aclnnAddGetWorkspaceSize; null for a kernel that is launched directly
  void* run;      // aclnnAdd
  ComparedTypes compared{};

  // The launcher, of type F, of a kernel that is launched directly (direct_launch.h).
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

// An open library, or why it cannot be used.
struct OpenLibrary {
  void* handle = nullptr;
  std::string problem;
};

inline OpenLibrary open_library(const KernelLibrary& library) {
  if (library.name.empty()) return {nullptr, library.remark};
  if (library.name.find('/') != std::string::npos) {
    if (access(library.name.c_str(), F_OK) != 0) return {nullptr, "not there"};
    const std::string refusal = explain_owner(library.name);
    if (!refusal.empty()) return {nullptr, refusal};
  }
  // Never closed: kernels stay in use until the process ends.
  void* handle = dlopen(library.name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) return {handle, ""};
  const char* error = dlerror();
  std::string reason = error == nullptr ? "?" : error;
  // The line in which the reason is shown names the library already.
  if (reason.compare(0, library.name.size() + 2, library.name + ": ") == 0) {
    reason.erase(0, library.name.size() + 2);
  }
  return {nullptr, "cannot be loaded: " + reason};
}

// The libraries of a search. Each is opened when the search reaches it, so that those after the one
// that is used stay untouched.
class OpenLibraries {
 public:
  std::size_t size() const noexcept { return libraries_.size(); }
  const KernelLibrary& library(std::size_t index) const { return libraries_[index]; }

  OpenLibrary& open(std::size_t index) {
    std::optional<OpenLibrary>& opened = opened_[index];
    if (!opened.has_value()) opened = open_library(libraries_[index]);
    return *opened;
  }

  // A line for each place, such as "CANN: libopapi.so: has none of these". Adjacent places with the
  // same result share one line. Libraries that were not opened are left out.
  std::vector<std::string> places() const {
    std::vector<std::string> lines;
    for (std::size_t i = 0, next = 0; i < size(); i = next) {
      next = i + 1;
      if (!opened_[i].has_value()) continue;
      std::string names = libraries_[i].name;
      for (; next < size() && have_same_result(i, next); ++next) {
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
  bool have_same_result(std::size_t a, std::size_t b) const {
    return opened_[b].has_value() && libraries_[a].origin == libraries_[b].origin &&
           !libraries_[a].name.empty() && !libraries_[b].name.empty() &&
           opened_[a]->problem == opened_[b]->problem;
  }

  std::vector<KernelLibrary> libraries_ = kernel_libraries();
  std::vector<std::optional<OpenLibrary>> opened_{libraries_.size()};
};

}  // namespace detail

struct KernelSearch {
  std::optional<Kernel> kernel;
  // Without a kernel, every place that was searched and what was found there. Else the libraries
  // that have a preferred kernel, for another NPU.
  std::vector<std::string> searched;
  // If the kernel must not be used, why: then there is none.
  std::string fault;
};

namespace detail {

// Why the functions of a kernel cannot be used together; "" when they can. A library also offers
// the functions of the libraries that it is linked to.
inline std::string explain_split(const std::string& title, const std::string& symbol,
                                 const void* prepare, const void* run) {
  if (prepare == nullptr) return "";
  const std::string first = custom_pypto::detail::library_path(prepare);
  const std::string second = custom_pypto::detail::library_path(run);
  if (first == second) return "";
  return title + ": the kernel's two functions are in two libraries, " + symbol +
         "GetWorkspaceSize in " + first + " and " + symbol + " in " + second +
         ", so one would run with what the other has prepared; install one opp package that has " +
         "both, or remove the first library's from the places that are searched";
}

}  // namespace detail

// Finds the first of `symbols` that any library has, in the first library that has it, with both
// phases if it has two. `op` may be "".
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
        std::string fault = detail::explain_split(title, symbol, prepare, run);
        if (!fault.empty()) return {std::nullopt, {}, std::move(fault)};
        // The loader may have found the library by its name.
        const std::string path = custom_pypto::detail::library_path(run);
        return {
            Kernel{symbol, title, path.empty() ? library.name : path, library.origin, prepare, run},
            unfit, ""};
      }
      if (run != nullptr || prepare != nullptr) {
        opened.problem = "has " + (run == nullptr ? phase_1 : symbol) + " but no " +
                         (run == nullptr ? symbol : phase_1);
      }
    }
  }
  return {std::nullopt, libraries.places(), ""};
}

// The message of a search that found nothing.
inline std::string explain_missing_kernel(const std::string& op,
                                          const std::vector<const char*>& symbols,
                                          const std::vector<std::string>& searched) {
  std::string names;
  std::string advice;
  for (const char* symbol : symbols) {
    names += (names.empty() ? "" : ", ") + std::string(symbol);
    if (has_two_phases(symbol)) continue;
    advice += " " + std::string(symbol) +
              " is in the plugin's wheel where that is built with CANN: install the plugin from "
              "its source after `source <CANN folder>/set_env.sh`.";
  }
  std::string text = (op.empty() ? "" : op + ": ") + "this machine has no NPU kernel " +
                     (symbols.size() == 1 ? names : "for it, which would be one of " + names) +
                     ". Searched were\n";
  for (const std::string& place : searched) text += "  " + place + "\n";
  return text +
         "Install a custom opp package that has it and `source` its set_env.bash (or put the "
         "package's folder into ASCEND_CUSTOM_OPP_PATH), or a CANN that ships it." +
         advice;
}

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
