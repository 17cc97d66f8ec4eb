// What the integers of a call say: its sequences, and the windows that they close.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace custom_pypto_compressor {

using torch::stable::Tensor;

// The new tokens of a sequence. They have the positions [start, start + count).
struct Sequence {
  int64_t row;    // of the first one in x
  int64_t count;  // of tokens that are used
  int64_t start;
  int64_t place;         // of the first one among the used tokens of all sequences
  int64_t first_window;  // among all windows
};

// A window of `ratio` tokens whose last one is new: tokens [number * ratio, (number + 1) * ratio).
struct Window {
  int64_t sequence;
  int64_t number;
  int64_t row;  // in the outputs
};

// The sizes of a call.
struct Sizes {
  int64_t ratio;
  int64_t parts;     // windows that a row covers: coff
  int64_t channels;  // of a row: D

  int64_t width() const { return parts * channels; }  // numbers of kv, or of scores, of a token
  int64_t tokens() const { return parts * ratio; }    // that a row covers
};

struct Batch {
  // x is [tokens, H] with cu_seqlens, or [sequences, tokens, H]. Throws std::runtime_error that
  // begins with `op` and names the argument whose value is wrong.
  Batch(const char* op, const Tensor& x, const std::optional<Tensor>& cu_seqlens,
        const std::optional<Tensor>& seqused, const std::optional<Tensor>& start_pos,
        int64_t ratio);

  std::vector<Sequence> sequences;
  std::vector<Window> windows;
  int64_t tokens = 0;   // that are used
  int64_t longest = 0;  // used tokens of a sequence
};

}  // namespace custom_pypto_compressor
