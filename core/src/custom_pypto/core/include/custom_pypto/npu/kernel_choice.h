// Which of several NPU kernels serves an op on this machine: chosen at first use, once per
// process. Every choice of a library is known from the moment it is loaded, so that
// `custom-pypto info` and `doctor` can show what would be used.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/kernel.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

// To be made at namespace scope:
//   const KernelChoice add_kernels("add_custom", {"aclnnAddCustom", "aclnnAdd"});
class KernelChoice {
 public:
  // `op` as in the op's schema; null when the symbol says enough. `symbols`: the preferred first.
  KernelChoice(const char* op, std::initializer_list<const char*> symbols)
      : state_(*std::make_unique<State>(op == nullptr ? "" : op, symbols).release()),
        next_(first()) {
    first() = this;
  }
  KernelChoice(const KernelChoice&) = delete;
  KernelChoice& operator=(const KernelChoice&) = delete;

  // The chosen kernel, for ever the same. Throws std::runtime_error, which lists every place that
  // was searched, when no library has any; the next call searches again.
  const Kernel& get() const {
    const Kernel* chosen = state_.chosen.load(std::memory_order_acquire);
    return CUSTOM_PYPTO_UNLIKELY(chosen == nullptr) ? choose() : *chosen;
  }

  // The chosen kernel; null when no library has any, which is not looked at again.
  const Kernel* find() const {
    const Kernel* chosen = state_.chosen.load(std::memory_order_acquire);
    if (chosen != nullptr || state_.is_missing.load(std::memory_order_acquire)) return chosen;
    const std::lock_guard<std::mutex> lock(state_.mutex);
    if (state_.chosen.load(std::memory_order_relaxed) == nullptr) keep(search());
    return state_.chosen.load(std::memory_order_relaxed);
  }

  // What get() would find now, without choosing it.
  KernelSearch preview() const {
    const Kernel* chosen = state_.chosen.load(std::memory_order_acquire);
    return chosen == nullptr ? search() : KernelSearch{*chosen, {}};
  }

  const std::string& op() const noexcept { return state_.op; }
  const std::vector<const char*>& symbols() const noexcept { return state_.symbols; }

  // All choices of this library: from the first, by next().
  static const KernelChoice*& first() noexcept {
    static const KernelChoice* head = nullptr;
    return head;
  }
  const KernelChoice* next() const noexcept { return next_; }

 private:
  // Never destroyed: at exit, other threads may still launch.
  struct State {
    State(const char* op_name, std::initializer_list<const char*> names)
        : op(op_name), symbols(names) {}

    const std::string op;
    const std::vector<const char*> symbols;
    std::mutex mutex;
    std::optional<Kernel> kernel;
    std::atomic<const Kernel*> chosen{nullptr};
    std::atomic<bool> is_missing{false};
  };

  KernelSearch search() const { return search_kernel(state_.op, state_.symbols); }

  CUSTOM_PYPTO_COLD const Kernel& choose() const {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    if (state_.chosen.load(std::memory_order_relaxed) == nullptr) {
      KernelSearch found = search();
      if (!found.kernel.has_value()) throw std::runtime_error(missing(found.searched));
      keep(std::move(found));
    }
    return *state_.chosen.load(std::memory_order_relaxed);
  }

  void keep(KernelSearch&& found) const {
    if (found.kernel.has_value()) {
      state_.kernel = std::move(found.kernel);
      state_.chosen.store(&*state_.kernel, std::memory_order_release);
    } else {
      state_.is_missing.store(true, std::memory_order_release);
    }
  }

  std::string missing(const std::vector<std::string>& searched) const {
    std::string names;
    for (const char* symbol : state_.symbols) {
      names += (names.empty() ? "" : ", ") + std::string(symbol);
    }
    const bool one = state_.symbols.size() == 1;
    std::string text =
        (state_.op.empty() ? "" : state_.op + ": ") + "this machine has no NPU kernel " +
        (one ? names : "for it, which would be one of " + names) + ". Searched were\n";
    for (const std::string& place : searched) text += "  " + place + "\n";
    text +=
        "Install a custom opp package that has it and `source` its set_env.bash (or put the "
        "package's folder into ASCEND_CUSTOM_OPP_PATH), or a CANN that ships it.";
    for (const char* symbol : state_.symbols) {
      if (has_two_phases(symbol)) continue;
      text += " " + std::string(symbol) +
              " is in the plugin's wheel where that is built with CANN: install the plugin from "
              "its source after `source <CANN folder>/set_env.sh`.";
    }
    return text;
  }

  State& state_;
  const KernelChoice* const next_;
};

namespace detail {

// The choice of one symbol that a launch names where it stands; known when the library is loaded.
template <typename Name>
inline const KernelChoice named_kernel(nullptr, {Name::text()});

inline void put_json(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  out += '"';
}

template <typename Texts>
void put_json_list(std::string& out, const Texts& texts) {
  out += '[';
  for (const auto& each : texts) {
    if (out.back() != '[') out += ", ";
    put_json(out, each);
  }
  out += ']';
}

inline void put_json(std::string& out, const KernelChoice& choice) {
  const KernelSearch search = choice.preview();
  out += "{\"op\": ";
  put_json(out, choice.op());
  out += ", \"symbols\": ";
  put_json_list(out, choice.symbols());
  out += ", \"symbol\": ";
  put_json(out, search.kernel.has_value() ? search.kernel->symbol : "");
  out += ", \"library\": ";
  put_json(out, search.kernel.has_value() ? search.kernel->library : "");
  out += ", \"origin\": ";
  put_json(out, search.kernel.has_value() ? origin_name(search.kernel->origin) : "");
  out += ", \"searched\": ";
  put_json_list(out, search.searched);
  out += '}';
}

// Every choice once, in the order of the source.
inline std::string kernels_as_json() {
  std::vector<const KernelChoice*> choices;
  for (const KernelChoice* each = KernelChoice::first(); each != nullptr; each = each->next()) {
    choices.insert(choices.begin(), each);
  }
  std::string json = "[";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) json += ", ";
    put_json(json, *choices[i]);
  }
  return json + "]";
}

}  // namespace detail
}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END

// For core: the kernels that this library's ops would use, as JSON (a list of objects with op,
// symbols, symbol, library, origin, searched). Returns how many bytes that takes with its NUL, and
// writes it when `size` is at least that; 0 when it failed.
extern "C" __attribute__((visibility("default"), used)) inline std::size_t
custom_pypto_npu_kernels_v1(char* text, std::size_t size) noexcept {
  try {
    const std::string json = ::custom_pypto::npu::detail::kernels_as_json();
    if (text != nullptr && size > json.size()) std::memcpy(text, json.c_str(), json.size() + 1);
    return json.size() + 1;
  } catch (const std::exception&) {
    return 0;
  }
}
