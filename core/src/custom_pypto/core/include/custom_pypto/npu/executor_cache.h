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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
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
  // Storage formats are part of the key, so without aclGetFormat there is no key.
  cache.is_there = cache.begin != nullptr && cache.end != nullptr && cache.takes != nullptr &&
                   cache.add_address != nullptr && cache.set_key != nullptr &&
                   cache.find != nullptr && cann().format_of != nullptr;
  return cache;
}

// The bytes that tell a launch from others. Every part says its kind and its size, so that two
// different launches never have the same bytes.
class CacheKey {
 public:
  // Room for a launch of a few tensors at once, instead of growing to it in steps.
  void reserve() { bytes_.reserve(1024); }

  void put(std::string_view text) { put_sized('s', text.data(), text.size()); }
  void put(const char* text) { text == nullptr ? put(std::nullopt) : put(std::string_view(text)); }
  void put(int64_t value) { put_sized('i', &value, sizeof value); }
  void put(int value) { put(static_cast<int64_t>(value)); }
  void put(double value) { put_sized('d', &value, sizeof value); }
  void put(bool value) { put_sized('b', &value, sizeof value); }
  void put(ScalarType dtype) { put(static_cast<int64_t>(acl_data_type(dtype))); }
  void put(std::nullopt_t) { bytes_.push_back('n'); }
  void put(const void* address) { put_sized('p', &address, sizeof address); }
  void put(const TypedScalar& scalar) {
    put(scalar.dtype());
    put_sized('v', scalar.data(), scalar.size());
  }

  void put(const Tensor& tensor) {
    put(tensor.scalar_type());
    put_sized('t', tensor.sizes().data(), tensor.sizes().size() * sizeof(int64_t));
    put_sized('t', tensor.strides().data(), tensor.strides().size() * sizeof(int64_t));
    put(tensor.storage_offset());
    int64_t bytes = 0;
    custom_pypto::detail::expect_success(aoti_torch_get_storage_size(tensor.get(), &bytes),
                                         "aoti_torch_get_storage_size");
    put(bytes);
  }

  // Its storage format, which the Tensor does not tell.
  void put_format(AclTensor tensor) {
    int format = 0;
    is_complete_ = is_complete_ && cann().format_of(tensor, &format) == 0;
    put(format);
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
    if (value.has_value()) {
      put(*value);
    } else {
      put(std::nullopt);
    }
  }

  // False when something about a tensor could not be told.
  bool is_complete() const noexcept { return is_complete_; }
  uint8_t* data() noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return bytes_.size(); }

 private:
  void put_sized(char kind, const void* data, std::size_t size) {
    bytes_.push_back(static_cast<uint8_t>(kind));
    append(&size, sizeof size);
    append(data, size);
  }
  void append(const void* data, std::size_t size) {
    const auto* begin = static_cast<const uint8_t*>(data);
    if (size != 0) bytes_.insert(bytes_.end(), begin, begin + size);
  }
  template <typename List>
  void put_list(const List& values) {
    bytes_.push_back('l');
    put(static_cast<int64_t>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      put(static_cast<const typename List::value_type&>(values.begin()[i]));
    }
  }

  std::vector<uint8_t> bytes_;
  bool is_complete_ = true;
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
  // Null when there is no cache, or this launch is not for it. `made` is a tuple of what `args`
  // were made into.
  template <typename Arguments, typename... Args>
  static std::optional<CacheEntry> of(const Kernel& kernel, AclStream stream, int32_t device,
                                      int64_t deterministic_level, const Arguments& made,
                                      const Args&... args) {
    const CannCache& cache = cann_cache();
    if (!cache.is_there || !cache.takes(kernel.symbol.c_str())) return std::nullopt;
    CacheEntry entry(kernel.symbol.c_str());
    detail::CacheKey& key = entry.key_;
    key.reserve();
    key.put("custom_pypto");
    // CANN tells ops apart by where their names are.
    key.put(static_cast<const void*>(kernel.symbol.c_str()));
    key.put(static_cast<const void*>(kernel.prepare));
    key.put(static_cast<const void*>(stream));
    key.put(static_cast<int64_t>(device));
    key.put(deterministic_level);
    // Phase 1 cuts the work into parts by how many cores there are: cube cores, vector cores.
    for (const int kind : {0, 1}) {
      uint32_t count = 0;
      if (cann().thread_cores != nullptr) cann().thread_cores(kind, &count);
      key.put(static_cast<int64_t>(count));
    }
    (key.put(args), ...);
    const auto put_format = [&](AclTensor tensor) { key.put_format(tensor); };
    std::apply([&](const auto&... each) { (detail::visit_acl_tensors(each, put_format), ...); },
               made);
    if (!key.is_complete()) return std::nullopt;
    (detail::visit_tensors(args, [&](const Tensor& tensor) { entry.add_storage(tensor); }), ...);
    return entry;
  }

  const char* symbol() const noexcept { return symbol_; }
  detail::CacheKey& key() noexcept { return key_; }
  const std::vector<char*>& storages() const noexcept { return storages_; }

 private:
  explicit CacheEntry(const char* symbol) : symbol_(symbol) {}

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
