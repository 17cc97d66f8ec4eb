// What an op's arguments must be in memory, checked before a kernel runs. Each tensor needs strided
// elements within its storage. In a tensor that is written to, each element needs memory of its
// own, or values are lost or read too late. Its version counter is bumped: by the counter autograd
// finds that a saved tensor was written, and without a bump gradients are silently wrong.
#pragma once

#include <custom_pypto/abi.h>
#include <custom_pypto/c_interface.h>
#include <custom_pypto/message.h>
#include <custom_pypto/placement.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/stableivalue_conversions.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// Whether strided tensors share memory is a question of bytes, for tensors whose addresses
// interleave as the K and V of one cache do. The answer is exact where every stride of a tensor is
// at least the span of the elements that it repeats, as in a cache and its slices.
enum class Overlap { kNone, kPossible, kCertain };

// The bytes of a tensor with elements: runs of adjacent bytes, repeated level by level.
class ByteRuns {
 public:
  // `count` copies of what is inside, `stride` bytes apart.
  struct Level {
    int64_t stride;
    int64_t count;
    int64_t span;  // From the first byte of the first copy to behind the last byte of the last.
  };

  ByteRuns(const int64_t* sizes, const int64_t* strides, std::size_t ndim, int64_t element_size)
      : run_(element_size) {
    std::array<Level, kMostLevels> dims;
    std::size_t count = 0;
    for (std::size_t dim = 0; dim < ndim; ++dim) {
      if (sizes[dim] > 1 && strides[dim] != 0) {
        dims[count++] = {strides[dim] * element_size, sizes[dim], 0};
      }
    }
    std::sort(dims.begin(), dims.begin() + count,
              [](const Level& a, const Level& b) { return a.stride < b.stride; });
    for (std::size_t dim = 0; dim < count; ++dim) add(dims[dim].stride, dims[dim].count);
  }

  // Whether two elements may have a byte in common, copies of stride 0 apart.
  bool may_repeat() const { return may_repeat_; }
  // Whether the tensor has every byte of its runs.
  bool is_exact() const { return is_exact_; }
  std::size_t depth() const { return depth_; }
  // The outermost of the first `depth` levels.
  const Level& level(std::size_t depth) const { return levels_[depth - 1]; }
  // Of the first `depth` levels.
  int64_t span(std::size_t depth) const { return depth == 0 ? run_ : level(depth).span; }

 private:
  // A dimension of size 2 or more doubles the elements, whose number fits 64 bits.
  static constexpr std::size_t kMostLevels = 64;

  void add(int64_t stride, int64_t count) {
    const int64_t inside = span(depth_);
    const int64_t whole = (count - 1) * stride + inside;
    if (stride < inside) {
      // Copies that interleave or overlap become one run.
      may_repeat_ = true;
      is_exact_ = is_exact_ && depth_ == 0;
      depth_ = 0;
      run_ = whole;
    } else if (depth_ == 0 && stride == run_) {
      run_ = whole;
    } else if (depth_ > 0 && stride == level(depth_).stride * level(depth_).count) {
      levels_[depth_ - 1].count *= count;
      levels_[depth_ - 1].span = whole;
    } else {
      levels_[depth_++] = {stride, count, whole};
    }
  }

  int64_t run_;
  std::size_t depth_ = 0;
  std::array<Level, kMostLevels> levels_;  // The innermost first.
  bool may_repeat_ = false;
  bool is_exact_ = true;
};

// Each level can double the number of parts that are compared: an answer takes no longer than this.
inline constexpr int kMostComparisons = 256;

// Compares the first levels of `a` and `b`; `b` begins `shift` bytes behind `a`.
inline Overlap overlap_of_levels(const ByteRuns& a, std::size_t a_depth, const ByteRuns& b,
                                 std::size_t b_depth, int64_t shift, int& comparisons_left) {
  if (comparisons_left == 0) return Overlap::kPossible;
  --comparisons_left;
  const int64_t a_span = a.span(a_depth);
  const int64_t b_span = b.span(b_depth);
  if (shift >= a_span || -shift >= b_span) return Overlap::kNone;
  const Overlap found = a.is_exact() && b.is_exact() ? Overlap::kCertain : Overlap::kPossible;
  if (a_depth == 0 && b_depth == 0) return found;
  const int64_t a_stride = a_depth == 0 ? 0 : a.level(a_depth).stride;
  const int64_t b_stride = b_depth == 0 ? 0 : b.level(b_depth).stride;
  if (a_stride < b_stride) {
    return overlap_of_levels(b, b_depth, a, a_depth, -shift, comparisons_left);
  }
  const int64_t inside = a.span(a_depth - 1);
  const int64_t last = a.level(a_depth).count - 1;
  Overlap most = Overlap::kNone;
  if (a_stride == b_stride) {
    // A copy in `b` begins `first` + i * stride behind one in `a`; at most two of these distances
    // are less than a span.
    const int64_t other = b.span(b_depth - 1);
    const int64_t first = shift - last * a_stride;
    const int64_t begin = first > -other ? 0 : (-other - first) / a_stride + 1;
    const int64_t end = inside > first ? (inside - first - 1) / a_stride + 1 : 0;
    for (int64_t i = begin; i < std::min(end, last + b.level(b_depth).count); ++i) {
      most = std::max(most, overlap_of_levels(a, a_depth - 1, b, b_depth - 1, first + i * a_stride,
                                              comparisons_left));
    }
    return most;
  }
  // The copies in `a` that reach into the span of `b`.
  const int64_t begin = shift < inside ? 0 : (shift - inside) / a_stride + 1;
  const int64_t end = std::min(last, (shift + b_span - 1) / a_stride) + 1;
  if (end - begin > 2) return b_depth == 0 ? found : Overlap::kPossible;
  for (int64_t i = begin; i < end; ++i) {
    most = std::max(most, overlap_of_levels(a, a_depth - 1, b, b_depth, shift - i * a_stride,
                                            comparisons_left));
  }
  return most;
}

// Whether two tensors overlap; `b` begins `shift` bytes behind `a`.
inline Overlap overlap_of(const ByteRuns& a, const ByteRuns& b, int64_t shift) {
  int comparisons_left = kMostComparisons;
  return overlap_of_levels(a, a.depth(), b, b.depth(), shift, comparisons_left);
}

// From the first byte of a tensor's first element to behind its last byte; 0 without elements.
inline int64_t byte_span(const Tensor& tensor, int64_t element_size) {
  const int64_t count = tensor.numel();
  if (count == 0 || tensor.is_contiguous()) return count * element_size;
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  int64_t last = 0;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) last += (sizes[dim] - 1) * strides[dim];
  return (last + 1) * element_size;
}
inline int64_t byte_span(const Tensor& tensor) {
  return byte_span(tensor, static_cast<int64_t>(tensor.element_size()));
}

inline bool is_quantised(int32_t dtype) {
  // torch's qint8, quint8, qint32, quint4x2 and quint2x4: its C interface has no names for them.
  return dtype >= 12 && dtype <= 17 && dtype != dtype_code(ScalarType::BFloat16);
}

// Refuses a tensor that has no strided elements in memory. Kernels for one kind of device get only
// some of these from torch; kernels for every device get all.
inline void expect_memory(const char* op, ArgumentName argument, const Tensor& tensor) {
  int32_t layout = 0;
  expect_success(aoti_torch_get_layout(tensor.get(), &layout), "aoti_torch_get_layout");
  if (CUSTOM_PYPTO_UNLIKELY(layout != aoti_torch_layout_strided())) {
    fail(op, argument, "must be a dense tensor; pass its to_dense()");
  }
  const int32_t dtype = dtype_code(tensor);
  if (CUSTOM_PYPTO_UNLIKELY(is_quantised(dtype))) {
    fail(op, argument, "must not be quantised; pass its dequantize()");
  }
  const auto element_size = static_cast<int64_t>(aoti_torch_dtype_element_size(dtype));
  const int64_t span = byte_span(tensor, element_size);
  if (span == 0) return;
  const int64_t needed = tensor.storage_offset() * element_size + span;
  int64_t given = 0;
  expect_success(aoti_torch_get_storage_size(tensor.get(), &given), "aoti_torch_get_storage_size");
  // Tensors on meta have no memory, whatever their storage says.
  if (CUSTOM_PYPTO_UNLIKELY(given < needed) && tensor.device().type() != DeviceType::Meta) {
    fail(op, argument, "needs a storage of ", needed, " bytes, but its storage has ", given,
         ", as after untyped_storage().resize_(0); resize the storage, or pass another tensor");
  }
}

// The stable ABI has no function for it. Transposing a dimension with itself changes nothing, is an
// in-place op to autograd and works on every device.
inline bool try_bump_version(const Tensor& tensor) {
  std::array<StableIValue, 3> stack{torch::stable::detail::from(tensor),
                                    torch::stable::detail::from(int64_t{0}),
                                    torch::stable::detail::from(int64_t{0})};
  if (torch_call_dispatcher("aten::transpose_", "", stack.data(), TORCH_ABI_VERSION) !=
      AOTI_TORCH_SUCCESS) {
    return false;
  }
  aoti_torch_delete_tensor_object(torch::stable::detail::to<AtenTensorHandle>(stack[0]));
  return true;
}

// What torch's C interface lacks, or does twenty times slower: functions of libtorch, looked up
// once.
struct AutogradState {
  bool (*is_inference)(AtenTensorHandle);
  bool (*requires_grad)(const void* implementation);
  // Not for inference tensors, which have no counter.
  void (*bump_version)(AtenTensorHandle);
};

// While the library is opened: a first call has no lock that a fork could leave behind.
inline const AutogradState autograd_state = [] {
  AutogradState found{};
  find_in_torch("_ZN2at4_ops12is_inference4callERKNS_6TensorE", found.is_inference);
  find_in_torch("_ZNK3c1010TensorImpl13requires_gradEv", found.requires_grad);
  find_in_torch("_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE", found.bump_version);
  return found;
}();

inline bool ask(const char* question, const Tensor& tensor) {
  std::array<StableIValue, 1> stack{torch::stable::detail::from(tensor)};
  expect_success(torch_call_dispatcher(question, "", stack.data(), TORCH_ABI_VERSION), question);
  return torch::stable::detail::to<bool>(stack[0]);
}

inline bool is_inference(const Tensor& tensor) {
  const auto asked = autograd_state.is_inference;
  return asked != nullptr ? asked(tensor.get()) : ask("aten::is_inference", tensor);
}

// Where libtorch lacks the function, only for the result of an op.
inline bool requires_grad(const Tensor& tensor) {
  const auto asked = autograd_state.requires_grad;
  if (asked == nullptr) return !ask("aten::is_leaf", tensor);
  // An at::Tensor is a pointer to its implementation.
  return asked(*reinterpret_cast<const void* const*>(tensor.get()));
}

inline constexpr const char* kWithoutGrad =
    "Call the op under torch.no_grad() or pass a detached tensor.";

[[noreturn]] CUSTOM_PYPTO_COLD inline void fail_bump(const char* op, ArgumentName argument) {
  std::string reason = torch_reason();
  if (reason.back() != '.') reason += '.';
  // torch's own text for inference tensors already says what to do.
  const bool inference = reason.find("nference tensor") != std::string::npos;
  fail(op, argument, "is written in place, which torch refuses: ", reason, inference ? "" : " ",
       inference ? "" : kWithoutGrad);
}

// The arguments that a call is about to write to. All are checked before the first is bumped.
class MutatedArguments {
 public:
  explicit MutatedArguments(const char* op) : op_(op) {}

  // Checks a written argument alone, and against those before it.
  void add(ArgumentName argument, const Tensor& tensor) {
    Entry added{&tensor, argument, nullptr, byte_span(tensor)};
    if (added.span != 0) {
      expect_own_elements(argument, tensor);
      added.begin = static_cast<const char*>(tensor.mutable_data_ptr());
      for_each([&](const Entry& earlier) {
        if (CUSTOM_PYPTO_UNLIKELY(meet(earlier, added)))
          expect_apart(added, earlier, "written too");
      });
    }
    if (few_ < kFew) {
      few_entries_[few_++] = added;
    } else {
      more_entries_.push_back(added);
    }
  }

  // Checks an argument that is only read against all that are written.
  void add_read(ArgumentName argument, const Tensor& tensor) {
    const int64_t span = byte_span(tensor);
    if (span == 0) return;
    const Entry read{&tensor, argument, static_cast<const char*>(tensor.const_data_ptr()), span};
    for_each([&](const Entry& written) {
      if (CUSTOM_PYPTO_UNLIKELY(meet(written, read)) && !is_same_view(*written.tensor, tensor)) {
        expect_apart(written, read, "read");
      }
    });
  }

  // Tells autograd of the writes.
  void bump() {
    const bool has_grad_mode = aoti_torch_grad_mode_is_enabled();
    for_each([&](Entry& each) { expect_writable(each, has_grad_mode); });
    const auto bump_counter = autograd_state.bump_version;
    for_each([&](const Entry& each) {
      if (each.is_bumped) return;
      bump_counter != nullptr ? bump_counter(each.tensor->get()) : bump(each);
    });
  }

 private:
  struct Entry {
    const Tensor* tensor = nullptr;
    ArgumentName argument{nullptr};
    const char* begin;  // Null without elements, and on meta.
    int64_t span;
    bool is_bumped = false;
  };

  template <typename Function>
  void for_each(const Function& function) {
    for (std::size_t i = 0; i < few_; ++i) function(few_entries_[i]);
    for (Entry& each : more_entries_) function(each);
  }

  void bump(const Entry& each) const {
    if (CUSTOM_PYPTO_UNLIKELY(!try_bump_version(*each.tensor))) fail_bump(op_, each.argument);
  }

  void expect_own_elements(ArgumentName argument, const Tensor& tensor) const {
    if (tensor.is_contiguous()) return;
    const char* advice = "; pass a tensor with memory for each element, such as its contiguous()";
    const auto sizes = tensor.sizes();
    const auto strides = tensor.strides();
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
      if (CUSTOM_PYPTO_UNLIKELY(sizes[dim] > 1 && strides[dim] == 0)) {
        fail(op_, argument, "is written in place, but all ", sizes[dim], " of its dimension ", dim,
             " are at the same memory (stride 0), as expand() makes them", advice);
      }
    }
    if (CUSTOM_PYPTO_UNLIKELY(runs_of(tensor).may_repeat())) {
      fail(op_, argument, "is written in place, but with its sizes ", sizes, " and strides ",
           strides, " several elements may be at the same memory", advice);
    }
  }

  // Whether the spans have a byte in common. Written so that it is one comparison.
  static bool meet(const Entry& a, const Entry& b) {
    return a.begin < b.begin + b.span && b.begin < a.begin + a.span && a.begin != nullptr;
  }

  CUSTOM_PYPTO_COLD void expect_apart(const Entry& written, const Entry& other,
                                      const char* how) const {
    // Devices may have equal addresses.
    if (!(placement_of(*written.tensor) == placement_of(*other.tensor))) return;
    const ByteRuns a = runs_of(*written.tensor);
    const ByteRuns b = runs_of(*other.tensor);
    const Overlap overlap = overlap_of(a, b, other.begin - written.begin);
    if (overlap == Overlap::kNone) return;
    fail(op_, written.argument, "is written in place, but ",
         overlap == Overlap::kCertain ? "overlaps" : "may overlap", " argument '", other.argument,
         "', which is ", how,
         "; pass a tensor of its own, such as a clone() made outside of compiled"
         " code: Inductor drops clones");
  }

  static ByteRuns runs_of(const Tensor& tensor) {
    return {tensor.sizes().data(), tensor.strides().data(), tensor.sizes().size(),
            static_cast<int64_t>(tensor.element_size())};
  }

  // Whether the elements of two tensors that share memory are the same, one by one.
  static bool is_same_view(const Tensor& a, const Tensor& b) {
    if (a.const_data_ptr() != b.const_data_ptr() || dtype_code(a) != dtype_code(b)) return false;
    const auto next = [](const Tensor& tensor, std::size_t dim) {
      while (dim < tensor.sizes().size() && tensor.sizes()[dim] == 1) ++dim;
      return dim;
    };
    std::size_t i = next(a, 0);
    std::size_t j = next(b, 0);
    while (i < a.sizes().size() && j < b.sizes().size()) {
      if (a.sizes()[i] != b.sizes()[j] || a.strides()[i] != b.strides()[j]) return false;
      i = next(a, i + 1);
      j = next(b, j + 1);
    }
    return i == a.sizes().size() && j == b.sizes().size();
  }

  // Refuses what autograd does not let an op write to.
  void expect_writable(Entry& each, bool has_grad_mode) const {
    if (has_grad_mode && CUSTOM_PYPTO_UNLIKELY(requires_grad(*each.tensor))) {
      // torch has its own words for a leaf.
      if (ask("aten::is_leaf", *each.tensor)) bump(each);
      fail(op_, each.argument,
           "is written in place, but it requires grad and an op that writes to an argument has no "
           "gradient. ",
           kWithoutGrad);
    }
    if (is_inference(*each.tensor)) {
      // It has no counter: torch only says whether it may be written.
      bump(each);
      each.is_bumped = true;
    }
  }

  // Up to this many tensors are compared without an allocation.
  static constexpr std::size_t kFew = 4;

  const char* op_;
  std::size_t few_ = 0;
  std::array<Entry, kFew> few_entries_;
  std::vector<Entry> more_entries_;
};

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
