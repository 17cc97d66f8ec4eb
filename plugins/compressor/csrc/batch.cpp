// Reads cu_seqlens, seqused and start_pos.
#include "batch.h"

#include <custom_pypto/message.h>
#include <custom_pypto_blocks/paging.h>

#include <algorithm>

namespace custom_pypto_compressor {
namespace {

using custom_pypto::Integers;

// Positions and sums of them fit into 64 bits.
constexpr int64_t kMostTokensOfSequence = int64_t{1} << 48;

// The value of each sequence, or `otherwise` where there is no tensor.
class Values {
 public:
  Values(const std::optional<Tensor>& tensor, int64_t otherwise) : otherwise_(otherwise) {
    if (tensor.has_value()) values_.emplace(*tensor);
    stride_ = tensor.has_value() ? tensor->stride(0) : 0;
  }
  int64_t operator[](int64_t sequence) const {
    return values_.has_value() ? (*values_)[sequence * stride_] : otherwise_;
  }
  bool are_given() const { return values_.has_value(); }

 private:
  std::optional<Integers> values_;
  int64_t otherwise_;
  int64_t stride_;
};

// The first row of each sequence in x [T, H], and the end of the last one.
std::vector<int64_t> read_ends(const char* op, const Tensor& cu_seqlens, int64_t rows) {
  const Integers values(cu_seqlens);
  std::vector<int64_t> ends(static_cast<std::size_t>(cu_seqlens.size(0)));
  int64_t before = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends[i] = values[static_cast<int64_t>(i) * cu_seqlens.stride(0)];
    custom_pypto::check(i > 0 || ends[i] == 0, op, "cu_seqlens", "must begin with 0, got ",
                        ends[i]);
    custom_pypto::check(ends[i] >= before && ends[i] <= rows, op, "cu_seqlens",
                        "must not fall, and have no sum above ", rows, " (the rows of x), got ",
                        ends[i], " behind ", before);
    before = ends[i];
  }
  return ends;
}

}  // namespace

Batch::Batch(const char* op, const Tensor& x, const std::optional<Tensor>& cu_seqlens,
             const std::optional<Tensor>& seqused, const std::optional<Tensor>& start_pos,
             int64_t ratio) {
  const bool is_packed = x.dim() == 2;
  const std::vector<int64_t> ends =
      is_packed ? read_ends(op, *cu_seqlens, x.size(0)) : std::vector<int64_t>{};
  const int64_t count = is_packed ? static_cast<int64_t>(ends.size()) - 1 : x.size(0);
  const int64_t rows_of_sequence = is_packed ? 0 : (x.size(1) + ratio - 1) / ratio;
  const Values used(seqused, 0);
  const Values starts(start_pos, 0);
  for (int64_t b = 0; b < count; ++b) {
    const auto i = static_cast<std::size_t>(b);
    const int64_t length = is_packed ? ends[i + 1] - ends[i] : x.size(1);
    Sequence sequence{is_packed ? ends[i] : b * length, length, starts[b], tokens_};
    if (used.are_given()) {
      sequence.count = used[b];
      custom_pypto::check(sequence.count >= 0 && sequence.count <= length, op, "seqused",
                          "must be from 0 to ", length, " (the tokens of the sequence), got ",
                          sequence.count, " for sequence ", b);
    }
    custom_pypto::check(sequence.start >= 0 && sequence.start < kMostTokensOfSequence, op,
                        "start_pos", "must be at least 0 and below 2^48, got ", sequence.start,
                        " for sequence ", b);
    const int64_t first = sequence.start / ratio;
    const int64_t last = (sequence.start + sequence.count) / ratio;
    for (int64_t number = first; number < last; ++number) {
      const int64_t row =
          is_packed ? static_cast<int64_t>(windows_.size()) : b * rows_of_sequence + number - first;
      windows_.push_back({b, number, row});
    }
    tokens_ += sequence.count;
    longest_ = std::max(longest_, sequence.count);
    sequences_.push_back(sequence);
  }
}

}  // namespace custom_pypto_compressor
