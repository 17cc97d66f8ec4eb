// CANN's cache of the results of phase 1. If CANN has one and lets an op use it, a launch that
// equals an earlier one in all but the addresses skips phase 1. CANN adds the results of phase 1
// while a key is set. No NPU has confirmed this: CUSTOM_PYPTO_NPU_EXECUTOR_CACHE=1 turns it on.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/npu/argument.h>
#include <custom_pypto/npu/cann.h>
#include <custom_pypto/npu/kernel_search.h>
#include <custom_pypto/npu/storage_format.h>
#include <custom_pypto/npu/torch_npu.h>
#include <custom_pypto/npu/typed_scalar.h>
#include <custom_pypto/placement.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <variant>
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
  CannCache cache{};
  if (!is_switched_on(kExecutorCacheVariable, false)) return cache;
  find_in_aclnn("InitPTACacheThreadLocal", cache.begin);
  find_in_aclnn("UnInitPTACacheThreadLocal", cache.end);
  find_in_aclnn("CanUsePTACache", cache.takes);
  find_in_aclnn("AddTensorAddrToCachedList", cache.add_address);
  find_in_aclnn("SetPTACacheHashKey", cache.set_key);
  find_in_aclnn("PTAFindExecCache", cache.find);
  cache.is_there = cache.begin != nullptr && cache.end != nullptr && cache.takes != nullptr &&
                   cache.add_address != nullptr && cache.set_key != nullptr &&
                   cache.find != nullptr;
  return cache;
}

// Writes what distinguishes a launch from others with the same C++ types. A part of variable size,
// or that may be absent, begins with a head: two different launches never have the same words.
class KeyWriter {
 public:
  explicit KeyWriter(std::vector<int64_t>& words) : words_(words) {}

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
    put_head('t', sizes.size());
    put(custom_pypto::detail::dtype_code(tensor));
    put_format(tensor);
    put(storage_size(tensor));
    put(tensor.storage_offset());
    for (const int64_t size : sizes) put(size);
    for (const int64_t stride : strides) put(stride);
  }
  void put(const RawTensor& raw) {
    put_head('r', raw.sizes.size());
    put(custom_pypto::detail::dtype_code(raw.tensor));
    put(storage_size(raw.tensor));
    put(raw.tensor.storage_offset());
    for (const int64_t size : raw.sizes) put(size);
  }
  void put(const std::variant<Tensor, RawTensor>& tensor) {
    std::visit([&](const auto& each) { put(each); }, tensor);
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

 private:
  // Base formats are described to CANN alike, by the number of dimensions.
  void put_format(const Tensor& tensor) {
    const int64_t format = torch_npu().storage_format(tensor.get());
    if (is_base_format(format)) return put(std::nullopt);
    put(format);
    put(torch_npu().storage_sizes(tensor.get()));
  }
  void put_head(char kind, std::size_t count) {
    put(static_cast<int64_t>(kind) | static_cast<int64_t>(count) << 8);
  }
  // Padded with zeros to whole words.
  void put_bytes(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    for (std::size_t done = 0; done < size; done += sizeof(int64_t)) {
      int64_t word = 0;
      std::memcpy(&word, bytes + done, std::min(sizeof word, size - done));
      put(word);
    }
  }
  template <typename List>
  void put_list(const List& values) {
    put_head('l', values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      put(static_cast<const typename List::value_type&>(values.begin()[i]));
    }
  }

  std::vector<int64_t>& words_;
};

}  // namespace detail

inline const CannCache& cann_cache() {
  static const CannCache cache = detail::find_cann_cache();
  return cache;
}

// Its address stands for the C++ types of a launch's arguments: the same words mean different
// things for an optional argument and for an int64_t.
template <typename... Args>
inline constexpr char argument_types = 0;

// A launch as the cache sees it; empty when there is no cache, or it does not take the launch. CANN
// copies the key only in phase 1, from the memory that it was set from.
class CacheEntry {
 public:
  CacheEntry() = default;
  CacheEntry(const CacheEntry&) = delete;
  CacheEntry& operator=(const CacheEntry&) = delete;

  // Reads the arguments. Called once.
  template <typename... Args>
  void fill(const Kernel& kernel, AclStream stream, int64_t deterministic_level,
            const Args&... args) {
    const CannCache& cache = cann_cache();
    if (!cache.is_there || !cache.takes(kernel.symbol.c_str())) return;
    (detail::visit_tensors(args, [&](const Tensor& tensor) { add_storage(tensor); }), ...);
    storages_ = words_.size();
    detail::KeyWriter key(words_);
    key.put(static_cast<const void*>(&argument_types<Args...>));
    // CANN distinguishes ops by the addresses of their names, whose memory may be reused.
    key.put(static_cast<const void*>(kernel.symbol.c_str()));
    key.put(static_cast<const void*>(kernel.prepare));
    key.put(static_cast<const void*>(stream));  // which is of one device
    key.put(deterministic_level);
    // Phase 1 divides the work by the number of cores: cube cores, vector cores.
    for (const int kind : {0, 1}) {
      uint32_t count = 0;
      const auto cores = cann().thread_cores;
      // Unknown: the launches of two limits would look alike.
      if (cores != nullptr && cores(kind, &count) != 0) return;
      key.put(static_cast<int64_t>(count));
    }
    (key.put(args), ...);
    // Phase 1 may see that an op works in place, from tensors that share a place.
    for (std::size_t i = 0; i < storages_; ++i) {
      const int64_t* first = words_.data();
      key.put(static_cast<int64_t>(std::find(first, first + i, first[i]) - first));
    }
    symbol_ = kernel.symbol.c_str();
  }

  bool is_empty() const noexcept { return symbol_ == nullptr; }
  const char* symbol() const noexcept { return symbol_; }
  uint8_t* key() noexcept { return reinterpret_cast<uint8_t*>(words_.data() + storages_); }
  std::size_t key_size() const noexcept { return (words_.size() - storages_) * sizeof(int64_t); }

  // Visits the address of each tensor's storage.
  template <typename Visit>
  void visit_storages(const Visit& visit) {
    for (std::size_t i = 0; i < storages_; ++i) visit(reinterpret_cast<void*>(words_.data()[i]));
  }

 private:
  void add_storage(const Tensor& tensor) {
    words_.push_back(reinterpret_cast<intptr_t>(detail::storage_data(tensor)));
  }

  const char* symbol_ = nullptr;
  std::size_t storages_ = 0;
  std::vector<int64_t> words_;  // the storages, then the key
};

// This thread's use of the cache for one launch, from before phase 1 to after it. CANN keeps the
// result of phase 1 for launches that are equal to this one.
class CacheUse {
 public:
  // Has no effect for an empty entry.
  explicit CacheUse(CacheEntry& entry) : entry_(entry) {
    if (entry_.is_empty()) return;
    const CannCache& cache = cann_cache();
    // Called again: CANN remembers the op for this thread.
    cache.takes(entry_.symbol());
    cache.begin();
    entry_.visit_storages([&](void* storage) { cache.add_address(storage); });
    cache.set_key(entry_.key(), entry_.key_size());
  }
  CacheUse(const CacheUse&) = delete;
  CacheUse& operator=(const CacheUse&) = delete;
  ~CacheUse() {
    if (entry_.is_empty()) return;
    cann_cache().set_key(nullptr, 0);
    cann_cache().end();
  }

  // The result of phase 1 of an equal launch; null when there was none.
  AclExecutor find(uint64_t* workspace_size) {
    if (entry_.is_empty()) return nullptr;
    return cann_cache().find(entry_.key(), entry_.key_size(), workspace_size);
  }

 private:
  CacheEntry& entry_;
};

}  // namespace npu
CUSTOM_PYPTO_NAMESPACE_END
