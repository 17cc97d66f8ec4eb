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

// The length of each sequence in x [rows, H].
std::vector<int64_t> read_lengths_of(const char* op, const Tensor& cu_seqlens, int64_t rows) {
  std::vector<int64_t> lengths;
  const auto refuse = [&](int64_t sum, int64_t index, int64_t before) {
    custom_pypto::fail(op, "cu_seqlens", "must begin with 0, not fall, and have no sum above ",
                       rows, " (the rows of x), got ", sum, " at ", index, " behind ", before);
  };
  custom_pypto::read_prefix_sums(cu_seqlens, rows, lengths, refuse, true);
  return lengths;
}

}  // namespace

Batch::Batch(const char* op, const Tensor& x, const std::optional<Tensor>& cu_seqlens,
             const std::optional<Tensor>& seqused, const std::optional<Tensor>& start_pos,
             int64_t ratio) {
  const bool is_packed = x.dim() == 2;
  const std::vector<int64_t> lengths =
      is_packed ? read_lengths_of(op, *cu_seqlens, x.size(0))
                : std::vector<int64_t>(static_cast<std::size_t>(x.size(0)), x.size(1));
  const int64_t rows_of_sequence = is_packed ? 0 : (x.size(1) + ratio - 1) / ratio;
  const Values used(seqused, 0);
  const Values starts(start_pos, 0);
  int64_t row = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto b = static_cast<int64_t>(i);
    const int64_t length = lengths[i];
    Sequence sequence{row, length, starts[b], tokens_};
    row += length;
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
      const int64_t out_row =
          is_packed ? static_cast<int64_t>(windows_.size()) : b * rows_of_sequence + number - first;
      windows_.push_back({b, number, out_row});
    }
    tokens_ += sequence.count;
    longest_ = std::max(longest_, sequence.count);
    sequences_.push_back(sequence);
  }
}

}  // namespace custom_pypto_compressor
