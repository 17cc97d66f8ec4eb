// CANN's cache of what phase 1 prepares. Where a CANN has it, and lets an op use it, a launch that
// equals an earlier one in all but the addresses skips phase 1. CANN adds to it what phase 1 makes
// while a key is set.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/npu/argument.h>
#include <custom_pypto/npu/cann.h>
#include <custom_pypto/npu/kernel.h>
#include <custom_pypto/npu/torch_npu.h>
#include <custom_pypto/npu/typed_scalar.h>
#include <custom_pypto/placement.h>
#include <custom_pypto/torch_error.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace npu {

struct CannCache {
  void (*begin)();
  void (*end)();
  bool (*takes)(const char* symbol);
  void (*add_address)(void* storage);
  void (*set_key)(uint8_t* key, std::size_t size);
  AclExecutor (*find)(uint8_t* key, std::size_t size, uint64_t* workspace_size);
  bool is_there;
};

namespace detail {

inline CannCache find_cann_cache() {
  const auto find = [](const char* name, auto& function) {
    using Function = std::remove_reference_t<decltype(function)>;
    function = reinterpret_cast<Function>(torch_npu().find(name));
  };
  CannCache cache{};
  find("InitPTACacheThreadLocal", cache.begin);
  find("UnInitPTACacheThreadLocal", cache.end);
  find("CanUsePTACache", cache.takes);
  find("AddTensorAddrToCachedList", cache.add_address);
  find("SetPTACacheHashKey", cache.set_key);
  find("PTAFindExecCache", cache.find);
  cache.is_there = cache.begin != nullptr && cache.end != nullptr && cache.takes != nullptr &&
                   cache.add_address != nullptr && cache.set_key != nullptr &&
                   cache.find != nullptr;
  return cache;
}

// What tells a launch from others, in words of 64 bits. Every part whose size or kind may differ
// from launch to launch says both before it, so that two different launches never have the same
// words.
class CacheKey {
 public:
  // Room for a launch of a dozen tensors at once, instead of growing to it in steps.
  CacheKey() { words_.reserve(128); }

  void put(int64_t value) { words_.push_back(value); }
  void put(int value) { put(static_cast<int64_t>(value)); }
  void put(bool value) { put(static_cast<int64_t>(value)); }
  void put(const void* address) { put(static_cast<int64_t>(reinterpret_cast<intptr_t>(address))); }
  void put(double value) { put_bytes(&value, sizeof value); }
  void put(ScalarType dtype) { put(static_cast<int64_t>(dtype)); }
  void put(std::nullopt_t) { put_head('n', 0); }
  void put(const char* text) { text == nullptr ? put(std::nullopt) : put(std::string_view(text)); }
  void put(std::string_view text) {
    put_head('s', text.size());
    put_bytes(text.data(), text.size());
  }
  void put(const TypedScalar& scalar) {
    put_head('v', static_cast<std::size_t>(scalar.dtype()));
    put_bytes(scalar.data(), scalar.size());
  }

  void put(const Tensor& tensor) {
    const auto sizes = tensor.sizes();
    const auto strides = tensor.strides();
    int64_t storage_bytes = 0;
    custom_pypto::detail::expect_success(aoti_torch_get_storage_size(tensor.get(), &storage_bytes),
                                         "aoti_torch_get_storage_size");
    put_head('t', sizes.size());
    put(custom_pypto::detail::dtype_code(tensor));
    put(torch_npu().storage_format(tensor.get()));
    put(storage_bytes);
    put(tensor.storage_offset());
    words_.insert(words_.end(), sizes.begin(), sizes.end());
    words_.insert(words_.end(), strides.begin(), strides.end());
  }

  template <typename T>
  void put(const std::vector<T>& values) {
    put_list(values);
  }
  template <typename T>
  void put(const HeaderOnlyArrayRef<T>& values) {
    put_list(values);
  }
  template <typename T>
  void put(const std::optional<T>& value) {
    if (!value.has_value()) return put(std::nullopt);
    put_head('o', 1);
    put(*value);
  }

  uint8_t* data() noexcept { return reinterpret_cast<uint8_t*>(words_.data()); }
  std::size_t size() const noexcept { return words_.size() * sizeof(int64_t); }

 private:
  void put_head(char kind, std::size_t count) {
    put(static_cast<int64_t>(kind) | static_cast<int64_t>(count) << 8);
  }
  // Filled up with zeros to whole words.
  void put_bytes(const void* data, std::size_t size) {
    if (size == 0) return;
    const std::size_t before = words_.size();
    words_.resize(before + (size + sizeof(int64_t) - 1) / sizeof(int64_t));
    std::memcpy(words_.data() + before, data, size);
  }
  template <typename List>
  void put_list(const List& values) {
    put_head('l', values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      put(static_cast<const typename List::value_type&>(values.begin()[i]));
    }
  }

  std::vector<int64_t> words_;
};

}  // namespace detail

inline const CannCache& cann_cache() {
  static const CannCache cache = detail::find_cann_cache();
  return cache;
}

// A launch as the cache sees it, read from its arguments where it is called. CANN keeps no copy of
// its key before phase 1, which reads it where it was: it must not move once it is in use.
class CacheEntry {
 public:
  // Null when there is no cache, or this launch is not for it.
  template <typename... Args>
  static std::optional<CacheEntry> of(const Kernel& kernel, AclStream stream, int32_t device,
                                      int64_t deterministic_level, const Args&... args) {
    const CannCache& cache = cann_cache();
    if (!cache.is_there || !cache.takes(kernel.symbol.c_str())) return std::nullopt;
    std::optional<CacheEntry> entry(std::in_place, kernel.symbol.c_str(), sizeof...(Args));
    detail::CacheKey& key = entry->key_;
    // Kernels stay where they are.
    key.put(static_cast<const void*>(&kernel));
    key.put(static_cast<const void*>(stream));
    key.put(device);
    key.put(deterministic_level);
    // Phase 1 cuts the work into parts by how many cores there are: cube cores, vector cores.
    for (const int kind : {0, 1}) {
      uint32_t count = 0;
      if (cann().thread_cores != nullptr) cann().thread_cores(kind, &count);
      key.put(static_cast<int64_t>(count));
    }
    (key.put(args), ...);
    (detail::visit_tensors(args, [&](const Tensor& tensor) { entry->add_storage(tensor); }), ...);
    return entry;
  }

  CacheEntry(const char* symbol, std::size_t arguments) : symbol_(symbol) {
    storages_.reserve(arguments);
  }

  const char* symbol() const noexcept { return symbol_; }
  detail::CacheKey& key() noexcept { return key_; }
  const std::vector<char*>& storages() const noexcept { return storages_; }

 private:
  // Keeps where the tensor is, and tells the key which tensors before it are in the same place:
  // phase 1 may see from that that an op works in place.
  void add_storage(const Tensor& tensor) {
    const auto* first = static_cast<const char*>(tensor.const_data_ptr());
    const auto offset = tensor.storage_offset() * static_cast<int64_t>(tensor.element_size());
    char* storage = const_cast<char*>(first == nullptr ? first : first - offset);
    const auto same = std::find(storages_.begin(), storages_.end(), storage);
    key_.put(static_cast<int64_t>(same - storages_.begin()));
    storages_.push_back(storage);
  }

  const char* symbol_;
  detail::CacheKey key_;
  std::vector<char*> storages_;
};

// This thread's use of the cache for one launch, from before phase 1 to after it. CANN keeps what
// phase 1 makes in between, for launches that are equal to this one.
class CacheUse {
 public:
  // Of nothing: without effect.
  explicit CacheUse(std::optional<CacheEntry>& entry) : entry_(entry) {
    if (!entry_.has_value()) return;
    const CannCache& cache = cann_cache();
    // Asked again: CANN notes for this thread which op it is about.
    cache.takes(entry_->symbol());
    cache.begin();
    for (char* storage : entry_->storages()) cache.add_address(storage);
    cache.set_key(entry_->key().data(), entry_->key().size());
  }
  CacheUse(const CacheUse&) = delete;
  CacheUse& operator=(const CacheUse&) = delete;
  ~CacheUse() {
    if (!entry_.has_value()) return;
    cann_cache().set_key(nullptr, 0);
    cann_cache().end();
  }

  // What phase 1 made for an equal launch; null when there was none.
  AclExecutor find(uint64_t* workspace_size) {
    if (!entry_.has_value()) return nullptr;
    detail::CacheKey& key = entry_->key();
    return cann_cache().find(key.data(), key.size(), workspace_size);
  }

 private:
  std::optional<CacheEntry>& entry_;
};

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
