// Reads cu_seqlens, seqused and start_pos.
#include "batch.h"

#include <custom_pypto/message.h>
#include <custom_pypto_blocks/divide.h>
#include <custom_pypto_blocks/paging.h>

#include <algorithm>

namespace custom_pypto_compressor {
namespace {

using custom_pypto::check;

// Positions and sums of them fit into 64 bits.
constexpr int64_t kMostTokensOfSequence = int64_t{1} << 48;

// The length of each sequence of x.
std::vector<int64_t> read_lengths(const char* op, const Tensor& x,
                                  const std::optional<Tensor>& cu_seqlens) {
  if (x.dim() == 3) return std::vector<int64_t>(static_cast<std::size_t>(x.size(0)), x.size(1));
  std::vector<int64_t> lengths;
  const auto refuse = [&](int64_t sum, int64_t index, int64_t before) {
    custom_pypto::fail(op, "cu_seqlens", "must begin with 0, not fall, and have no sum above ",
                       x.size(0), " (the rows of x), got ", sum, " at ", index, " behind ", before);
  };
  custom_pypto::read_prefix_sums(*cu_seqlens, x.size(0), lengths, refuse, true);
  return lengths;
}

// Replaces `values` by those of a tensor, if there is one.
void read(const std::optional<Tensor>& tensor, std::vector<int64_t>& values) {
  if (!tensor.has_value()) return;
  const custom_pypto::Integers integers(*tensor);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = integers[static_cast<int64_t>(i) * tensor->stride(0)];
  }
}

}  // namespace

Batch::Batch(const char* op, const Tensor& x, const std::optional<Tensor>& cu_seqlens,
             const std::optional<Tensor>& seqused, const std::optional<Tensor>& start_pos,
             int64_t ratio) {
  const std::vector<int64_t> lengths = read_lengths(op, x, cu_seqlens);
  std::vector<int64_t> counts = lengths;
  std::vector<int64_t> starts(lengths.size());
  read(seqused, counts);
  read(start_pos, starts);
  int64_t row = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto b = static_cast<int64_t>(i);
    const Sequence sequence{row, counts[i], starts[i], tokens,
                            static_cast<int64_t>(windows.size())};
    check(sequence.count >= 0 && sequence.count <= lengths[i], op, "seqused", "must be from 0 to ",
          lengths[i], " (the tokens of the sequence), got ", sequence.count, " for sequence ", b);
    check(sequence.start >= 0 && sequence.start < kMostTokensOfSequence, op, "start_pos",
          "must be at least 0 and below 2^48, got ", sequence.start, " for sequence ", b);
    const int64_t first = sequence.start / ratio;
    const int64_t last = (sequence.start + sequence.count) / ratio;
    const int64_t first_row =
        x.dim() == 2 ? sequence.first_window : b * custom_pypto::divide_up(lengths[i], ratio);
    for (int64_t number = first; number < last; ++number) {
      windows.push_back({b, number, first_row + number - first});
    }
    row += lengths[i];
    tokens += sequence.count;
    longest = std::max(longest, sequence.count);
    sequences.push_back(sequence);
  }
}

}  // namespace custom_pypto_compressor
