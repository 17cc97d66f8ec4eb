// The keys that each row of queries has selected, their scores and the gradients of these: computed
// in fp32, or fp64 for fp64. Heads are the lanes of the dot products.
#pragma once

#include <custom_pypto/dtype.h>
#include <custom_pypto/message.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/divide.h>
#include <custom_pypto_blocks/paging.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "problem.h"

namespace custom_pypto_lightning_indexer {

// The keys of a row's sequence, among all tokens of key.
struct KeyRange {
  int64_t first;
  int64_t count;
};

// Query [rows, N1, D], key [tokens, N2, D], and the positions listed for each row. All contiguous.
struct Selection {
  const char* op;
  int64_t rows;  // query tokens, padding included
  int64_t key_heads;
  int64_t group;  // query heads of a key head
  int64_t depth;
  int64_t count;  // positions listed for a row
  Tensor query;
  Tensor key;
  Tensor weights;
  Tensor indices;
  std::vector<KeyRange> ranges;  // of the rows
};

// For a call whose keys are not paged. Throws std::runtime_error, naming the argument and its
// value, for lengths that the op does not take.
Selection selection_of(const Call& call, const Tensor& indices);

// Fills `values` with the scores of the keys at `indices`, whose positions exist.
void score_selected(const Call& call, const Tensor& indices, const Tensor& values);

// Computes the gradients of these scores; the bits do not depend on the number of threads. Throws
// as selection_of does, and for positions that the op does not take.
void differentiate_selected(const ops::npu_lightning_indexer_grad::Arguments& arguments,
                            const ops::npu_lightning_indexer_grad::CallShape& sizes,
                            const ops::npu_lightning_indexer_grad::Outputs& out);

// Numbers that a compiler can keep in a vector.
inline constexpr int64_t kLanes = 16;

// to += factor * from
template <class Real>
void add_scaled(int64_t count, Real factor, const Real* from, Real* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) to[i + lane] += factor * from[i + lane];
  }
  for (; i < count; ++i) to[i] += factor * from[i];
}

// Calls f with a tag of the C++ type of `tensor`, the argument `name`.
template <class F>
void visit_numbers(const char* op, const char* name, const Tensor& tensor, const F& f) {
  visit_dtype<custom_pypto::BFloat16, Half, float, double>(op, name, tensor.scalar_type(), f);
}

// Rows of one dtype. A unit is one row under one key head: token * key_heads + key head.
template <class T>
class SelectedRows {
 public:
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

  explicit SelectedRows(const Selection& selection)
      : selection_(selection),
        weights_(read_floats<Real>(selection.weights)),
        indices_(selection.indices),
        lanes_(divide_up(selection.group, kLanes) * kLanes) {}

  int64_t units() const { return selection_.rows * selection_.key_heads; }
  const Real* weights(int64_t unit) const { return weights_.data() + unit * selection_.group; }

  // Calls f(i, key) for each position i that a row lists; `key` counts among all keys.
  template <class F>
  void for_each(int64_t unit, const F& f) const {
    const int64_t head = unit % selection_.key_heads;
    const KeyRange& range =
        selection_.ranges[static_cast<std::size_t>(unit / selection_.key_heads)];
    for (int64_t i = 0; i < selection_.count; ++i) {
      const int64_t position = indices_[unit * selection_.count + i];
      if (position == -1) continue;
      check(position >= 0 && position < range.count, selection_.op, "sparse_indices",
            "must hold -1 or positions below ", range.count, ", the keys of the sequence, got ",
            position, " for query token ", unit / selection_.key_heads);
      f(i, (range.first + position) * selection_.key_heads + head);
    }
  }

  // Loads a row's query [group, depth], and its transpose [depth, lanes()].
  void load_query(int64_t unit, Real* query, Real* transposed) const {
    const T* from =
        selection_.query.const_data_ptr<T>() + unit * selection_.group * selection_.depth;
    std::fill_n(transposed, selection_.depth * lanes_, Real{0});
    for (int64_t head = 0; head < selection_.group; ++head) {
      for (int64_t d = 0; d < selection_.depth; ++d) {
        const Real value = static_cast<Real>(from[head * selection_.depth + d]);
        query[head * selection_.depth + d] = transposed[d * lanes_ + head] = value;
      }
    }
  }

  void load_key(int64_t key, Real* to) const {
    const T* from = selection_.key.const_data_ptr<T>() + key * selection_.depth;
    for (int64_t d = 0; d < selection_.depth; ++d) to[d] = static_cast<Real>(from[d]);
  }

  // dots[head] = query[head] . key
  void multiply(const Real* transposed, const Real* key, Real* dots) const {
    std::fill_n(dots, lanes_, Real{0});
    for (int64_t d = 0; d < selection_.depth; ++d) {
      add_scaled(lanes_, key[d], transposed + d * lanes_, dots);
    }
  }

  int64_t lanes() const { return lanes_; }

 private:
  const Selection& selection_;
  std::vector<Real> weights_;
  Integers indices_;
  int64_t lanes_;
};

}  // namespace custom_pypto_lightning_indexer
