// The search for an NPU kernel in the libraries of this machine.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

enum class Origin { wheel, custom_package, cann };

inline const char* origin_name(Origin origin) noexcept {
  if (origin == Origin::wheel) return "the plugin's own opp package";
  return origin == Origin::custom_package ? "a custom opp package" : "CANN";
}

// A library to search for kernels, or why a place has none.
struct KernelLibrary {
  Origin origin;
  std::string name;     // a path, or for CANN's own libraries a name that the loader looks up
  std::string problem;  // why it has no kernel; if `name` is empty, why there is no library
  // Has only this plugin's AscendC kernels. Their launchers are C functions of any name, and
  // another plugin's function of the same name takes other arguments.
  bool is_ascendc = false;
  bool is_for_another_npu = false;
  bool is_opened = false;  // or cannot be
  void* handle = nullptr;
};

// CANN's name of the NPU, "Ascend910B1"; "" where CANN is not loaded or finds none.
inline std::string soc_name() {
  const char* (*get)() = nullptr;
  custom_pypto::detail::find_loaded("libascendcl.so", "aclrtGetSocName", get);
  const char* name = get == nullptr ? nullptr : get();
  return name == nullptr ? "" : name;
}

// The --npu-arch of bisheng for an NPU; "" for one that is not known here.
inline std::string_view architecture_of(std::string_view soc) noexcept {
  struct Family {
    std::string_view prefix;
    std::string_view architecture;
  };
  // Without a digit, Ascend910B is a chip of the first generation.
  for (const Family& family : {Family{"Ascend910B1", "dav-2201"}, Family{"Ascend910B2", "dav-2201"},
                               Family{"Ascend910B3", "dav-2201"}, Family{"Ascend910B4", "dav-2201"},
                               Family{"Ascend910_93", "dav-2201"}, Family{"Ascend950", "dav-3510"},
                               Family{"Ascend310P", "dav-2002"}}) {
    if (soc.substr(0, family.prefix.size()) == family.prefix) return family.architecture;
  }
  return "";
}

namespace detail {

inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

inline bool is_folder(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// The names in a folder; empty when it cannot be read.
CUSTOM_PYPTO_COLD inline std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  const std::unique_ptr<DIR, custom_pypto::detail::Deleter<closedir>> directory(
      opendir(folder.c_str()));
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory.get())) {
    if (entry->d_name[0] != '.') names.emplace(entry->d_name);
  }
  return names;
}

// The parts without the spaces around them; empty ones are left out.
CUSTOM_PYPTO_COLD inline std::vector<std::string> split(const std::string& text, char separator) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  std::vector<std::string> parts;
  std::istringstream all(text);
  for (std::string part; std::getline(all, part, separator);) {
    const std::size_t first = part.find_first_not_of(kSpace);
    if (first == std::string::npos) continue;
    parts.push_back(part.substr(first, part.find_last_not_of(kSpace) + 1 - first));
  }
  return parts;
}

inline std::string library_of_package(const std::string& package,
                                      const std::string& name = "libcust_opapi") {
  return package + "/op_api/lib/" + name + ".so";
}

// The path of this plugin's library; "" when it is not known.
inline std::string plugin_library() {
  static const char here = 0;
  const std::string path = custom_pypto::detail::library_path(&here);
  const std::unique_ptr<char, custom_pypto::detail::Deleter<std::free>> real(
      realpath(path.c_str(), nullptr));
  return real == nullptr ? path : real.get();
}

constexpr std::string_view kSuffix = ".so";

inline bool starts_and_ends(const std::string& name, std::string_view start, std::string_view end) {
  return name.size() >= start.size() + end.size() && name.compare(0, start.size(), start) == 0 &&
         name.compare(name.size() - end.size(), end.size(), end) == 0;
}

// How the names of the libraries with this plugin's AscendC kernels begin:
// "libcustom_pypto_my_op_ascendc".
inline std::string ascendc_stem() {
  std::string path = plugin_library();
  path.erase(0, path.rfind('/') + 1);
  if (path.size() < kSuffix.size()) return "";
  return path.replace(path.size() - kSuffix.size(), kSuffix.size(), "_ascendc");
}

// Why kernels that were compiled for an architecture cannot run here; "" when they can, or when
// this NPU is not known.
CUSTOM_PYPTO_COLD inline std::string explain_architecture(const std::string& architecture) {
  const std::string soc = soc_name();
  const std::string needed(architecture_of(soc));
  if (needed.empty() || needed == architecture) return "";
  return "not used: it was compiled for " + architecture + ", and this machine's " + soc + " is " +
         needed + "; build the plugin with NPU_ARCH=" + needed;
}

// The folder of the Python package that holds this plugin's library; "" when it is not known.
inline std::string package_folder() {
  std::string path = plugin_library();
  for (int parent = 0; parent < 2; ++parent) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return "";
    path.erase(slash);
  }
  return path;
}

// The build puts the plugin's AscendC kernels beside its library, a file for each architecture:
// libcustom_pypto_my_op_ascendc_dav-2201.so.
CUSTOM_PYPTO_COLD inline void add_compiled(std::vector<KernelLibrary>& found) {
  const std::string folder = package_folder() + "/lib";
  const std::string start = ascendc_stem() + "_";
  const std::size_t before = found.size();
  for (const std::string& name : names_in(folder)) {
    if (!starts_and_ends(name, start, kSuffix)) continue;
    const std::string path = folder + "/" + name;
    const std::string reason = explain_architecture(
        name.substr(start.size(), name.size() - start.size() - kSuffix.size()));
    if (reason.empty()) {
      found.push_back({Origin::wheel, path, "", true});
    } else {
      found.push_back({Origin::wheel, "", path + ": " + reason, true, true});
    }
  }
  if (found.size() != before) return;
  found.push_back({Origin::wheel, "",
                   "this plugin was built without CANN (no " + start + "* in " + folder + ")",
                   true});
}

CUSTOM_PYPTO_COLD inline void add_wheel(std::vector<KernelLibrary>& found) {
  add_compiled(found);
  const std::string opp = package_folder() + "/opp";
  if (!is_folder(opp)) {
    found.push_back({Origin::wheel, "", "this plugin ships none (" + opp + ")"});
    return;
  }
  const std::string vendors = opp + "/vendors";
  if (!is_folder(vendors)) {
    found.push_back({Origin::wheel, library_of_package(opp), ""});
    return;
  }
  for (const std::string& vendor : names_in(vendors)) {
    if (!is_folder(vendors + "/" + vendor)) continue;
    found.push_back({Origin::wheel, library_of_package(vendors + "/" + vendor), ""});
  }
}

CUSTOM_PYPTO_COLD inline void add_custom_packages(std::vector<KernelLibrary>& found) {
  const auto add = [&](const std::string& package) {
    found.push_back({Origin::custom_package, library_of_package(package), ""});
    found.push_back(
        {Origin::custom_package, library_of_package(package, ascendc_stem()), "", true});
  };
  const std::vector<std::string> named = split(environment("ASCEND_CUSTOM_OPP_PATH"), ':');
  if (named.empty()) {
    found.push_back({Origin::custom_package, "", "ASCEND_CUSTOM_OPP_PATH is not set"});
  }
  for (const std::string& package : named) add(package);

  const std::string opp = environment("ASCEND_OPP_PATH");
  if (opp.empty()) {
    found.push_back({Origin::custom_package, "", "ASCEND_OPP_PATH is not set"});
    return;
  }
  const std::string configuration = opp + "/vendors/config.ini";
  std::ifstream lines(configuration);
  constexpr std::string_view key = "load_priority=";
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    for (const std::string& vendor : split(line.substr(key.size()), ',')) {
      add(opp + "/vendors/" + vendor);
    }
    return;
  }
  found.push_back({Origin::custom_package, "", configuration + " has no load_priority"});
}

CUSTOM_PYPTO_COLD inline void add_cann(std::vector<KernelLibrary>& found) {
  const std::string home = environment("ASCEND_HOME_PATH");
  if (home.empty()) {
    found.push_back({Origin::cann, "", "ASCEND_HOME_PATH is not set"});
  } else {
    for (const std::string& name : names_in(home + "/lib64")) {
      if (starts_and_ends(name, "libopapi_", kSuffix)) {
        found.push_back({Origin::cann, home + "/lib64/" + name, ""});
      }
    }
  }
  for (const char* name :
       {"libopapi.so", "libaclnn_ops_infer.so", "libaclnn_ops_train.so", "libaclnn_math.so",
        "libaclnn_sparse.so", "libaclnn_fft.so", "libaclnn_rand.so"}) {
    found.push_back({Origin::cann, name, ""});
  }
}

// Why this process must not load the file, by the rule of torch_npu; "" when it may.
CUSTOM_PYPTO_COLD inline std::string explain_owner(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return "";
  const uid_t owner = status.st_uid;
  const uid_t self = getuid();
  if (owner == self || owner == 0) return "";
  return "skipped: it belongs to the user id " + std::to_string(owner) +
         ", and this process runs as " + std::to_string(self) +
         "; `chown` it to that user or to root";
}

}  // namespace detail

// In the order of the search, as the environment is now: first the plugin's wheel (the kernels that
// its build compiled, then its opp package), then the custom opp packages of the machine
// (ASCEND_CUSTOM_OPP_PATH, then load_priority of ASCEND_OPP_PATH/vendors/config.ini), then CANN.
// A library that is listed twice keeps its first place.
CUSTOM_PYPTO_COLD inline std::vector<KernelLibrary> kernel_libraries() {
  std::vector<KernelLibrary> all;
  detail::add_wheel(all);
  detail::add_custom_packages(all);
  detail::add_cann(all);
  std::vector<KernelLibrary> libraries;
  std::set<std::string> names;
  for (KernelLibrary& each : all) {
    if (each.name.empty() || names.insert(each.name).second) libraries.push_back(std::move(each));
  }
  return libraries;
}

struct Kernel {
  std::string symbol;   // "aclnnAdd"
  std::string title;    // how messages begin: "add_custom: aclnnAdd"
  std::string library;  // its path
  Origin origin = Origin::wheel;
  void* prepare = nullptr;  // aclnnAddGetWorkspaceSize; null for a kernel that is launched directly
  void* run = nullptr;      // aclnnAdd
  // The types that the last launch agreed with (kernel_report.h).
  mutable std::atomic<const void*> compared{nullptr};

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

struct KernelSearch {
  std::shared_ptr<const Kernel> kernel;
  // Without a kernel, every place that was searched and what was found there. Else the libraries
  // that have a preferred kernel, for another NPU.
  std::vector<std::string> searched;
  // If the kernel must not be used, why: then there is none.
  std::string fault;
};

namespace detail {

// Opens a library, or says why it cannot be used. Called when the search reaches it, so that the
// libraries behind the one that is used stay untouched.
CUSTOM_PYPTO_COLD inline void open(KernelLibrary& library) {
  if (std::exchange(library.is_opened, true) || library.name.empty()) return;
  if (library.name.find('/') != std::string::npos) {
    library.problem =
        access(library.name.c_str(), F_OK) != 0 ? "not there" : explain_owner(library.name);
    if (!library.problem.empty()) return;
  }
  // Never closed: kernels stay in use until the process ends.
  library.handle = dlopen(library.name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library.handle != nullptr) return;
  const char* error = dlerror();
  std::string reason = error == nullptr ? "?" : error;
  // The line in which the reason is shown names the library already.
  if (reason.compare(0, library.name.size() + 2, library.name + ": ") == 0) {
    reason.erase(0, library.name.size() + 2);
  }
  library.problem = "cannot be loaded: " + reason;
}

// A line for each place, such as "CANN: libopapi.so: has none of these". Adjacent places with the
// same result share one line. Libraries that were not opened are left out.
CUSTOM_PYPTO_COLD inline std::vector<std::string> places(
    const std::vector<KernelLibrary>& libraries) {
  std::vector<std::string> lines;
  for (std::size_t i = 0, next = 0; i < libraries.size(); i = next) {
    const KernelLibrary& first = libraries[i];
    next = i + 1;
    if (!first.is_opened) continue;
    std::string names = first.name;
    for (; next < libraries.size() && !names.empty(); ++next) {
      const KernelLibrary& other = libraries[next];
      if (!other.is_opened || other.name.empty() || other.origin != first.origin ||
          other.problem != first.problem) {
        break;
      }
      names += ", " + other.name;
    }
    lines.push_back(std::string(origin_name(first.origin)) + ": " +
                    (names.empty() ? "" : names + ": ") +
                    (first.problem.empty() ? "has none of these" : first.problem));
  }
  return lines;
}

// Why the functions of a kernel cannot be used together; "" when they can. A library also offers
// the functions of the libraries that it is linked to.
CUSTOM_PYPTO_COLD inline std::string explain_split(const Kernel& kernel) {
  if (kernel.prepare == nullptr) return "";
  const std::string first = custom_pypto::detail::library_path(kernel.prepare);
  const std::string second = custom_pypto::detail::library_path(kernel.run);
  if (first == second) return "";
  return kernel.title + ": the kernel's two functions are in two libraries, " + kernel.symbol +
         "GetWorkspaceSize in " + first + " and " + kernel.symbol + " in " + second +
         ", so one would run with what the other has prepared; install one opp package that has " +
         "both, or remove the first library's from the places that are searched";
}

}  // namespace detail

// Finds the first of `symbols` that any library has, in the first library that has it, with both
// phases if it has two. `op` may be "".
CUSTOM_PYPTO_COLD inline KernelSearch search_kernel(const std::string& op,
                                                    const std::vector<const char*>& symbols) {
  std::vector<KernelLibrary> libraries = kernel_libraries();
  std::vector<std::string> unfit;
  for (const char* symbol : symbols) {
    const std::string phase_1 = std::string(symbol) + "GetWorkspaceSize";
    for (KernelLibrary& library : libraries) {
      if (library.is_ascendc == has_two_phases(symbol)) continue;
      detail::open(library);
      if (library.is_for_another_npu) unfit.push_back(library.problem);
      if (library.handle == nullptr) continue;
      void* run = dlsym(library.handle, symbol);
      void* prepare = dlsym(library.handle, phase_1.c_str());
      if (run != nullptr && (prepare != nullptr || !has_two_phases(symbol))) {
        const auto found = std::make_shared<Kernel>();
        found->symbol = symbol;
        found->title = op.empty() ? symbol : op + ": " + symbol;
        // The loader may have found the library by its name.
        found->library = custom_pypto::detail::library_path(run);
        if (found->library.empty()) found->library = library.name;
        found->origin = library.origin;
        found->prepare = prepare;
        found->run = run;
        std::string fault = detail::explain_split(*found);
        if (!fault.empty()) return {nullptr, {}, std::move(fault)};
        return {found, unfit, ""};
      }
      if (run != nullptr || prepare != nullptr) {
        library.problem = "has " + (run == nullptr ? phase_1 : symbol) + " but no " +
                          (run == nullptr ? symbol : phase_1);
      }
    }
  }
  return {nullptr, detail::places(libraries), ""};
}

// The message of a search that found nothing.
CUSTOM_PYPTO_COLD inline std::string explain_missing_kernel(
    const std::string& op, const std::vector<const char*>& symbols,
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
