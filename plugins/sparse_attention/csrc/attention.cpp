// Attention on the CPU: which keys a row attends to, and where its results are.
#include "attention.h"

#include <custom_pypto/dtype.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_sparse_attention/attend_rows.h>

#include <algorithm>

#include "cpu/attention_kernels.h"

namespace custom_pypto_sparse_attention {

// The rows of one call, and its results. `log_sum_exp` may be null.
class Attention::Rows final : public AttendRows {
 public:
  Rows(const Attention& attention, char* out, float* log_sum_exp)
      : a_(attention), out_(out), log_sum_exp_(log_sum_exp) {}

  int64_t count() const override { return static_cast<int64_t>(a_.selection_.rows().size()); }

  int64_t most_keys(int64_t row) const override {
    const Selection::Row& token = a_.selection_.rows()[static_cast<std::size_t>(row)];
    return token.sequence < 0 ? 0 : std::clamp<int64_t>(token.visible, 0, a_.s_.K);
  }

  void select(int64_t row, Keys& keys) const override {
    keys.latent.resize(static_cast<std::size_t>(a_.s_.K));
    keys.rope.resize(static_cast<std::size_t>(a_.s_.K));
    std::size_t selected = 0;
    a_.selection_.for_each(row, [&](int64_t block, int64_t token) {
      keys.latent[selected] = a_.kv_cache_.row(block, token);
      keys.rope[selected] = a_.kr_cache_.row(block, token);
      ++selected;
    });
    keys.latent.resize(selected);
    keys.rope.resize(selected);
  }

  AttendTask task(int64_t row, int64_t first_head, int64_t heads) const override {
    const AttentionSizes& s = a_.s_;
    const int64_t bytes = bytes_of(a_.element_);
    const int64_t head = row * s.N1 + first_head;
    AttendTask task = {};
    task.heads = heads;
    task.latent = s.L;
    task.rope = s.R;
    task.query = static_cast<const char*>(a_.query_.const_data_ptr()) + head * s.L * bytes;
    task.query_head_stride = s.L;
    task.query_rope =
        static_cast<const char*>(a_.query_rope_.const_data_ptr()) + head * s.R * bytes;
    task.query_rope_head_stride = s.R;
    task.scale = a_.scale_;
    task.out = out_ + head * s.L * bytes;
    task.out_head_stride = s.L;
    task.log_sum_exp = log_sum_exp_ == nullptr ? nullptr : log_sum_exp_ + head;
    return task;
  }

 private:
  const Attention& a_;
  char* out_;
  float* log_sum_exp_;
};

Selection selection_of(const char* op, const AttentionArguments& a, const AttentionSizes& s) {
  using Layout = ops::npu_sparse_flash_attention::LayoutKv;
  const KeyLayout layout = s.layout_kv == Layout::PA_BSND ? KeyLayout::paged
                           : s.layout_kv == Layout::BSND  ? KeyLayout::bsnd
                                                          : KeyLayout::tnd;
  return Selection({op, layout, a.query, a.kv_cache, a.sparse_indices, a.block_table,
                    "actual_seq_lengths_query", a.actual_seq_lengths_query, "actual_seq_lengths_kv",
                    a.actual_seq_lengths_kv, a.sparse_mode});
}

Attention::Attention(const char* op, const AttentionArguments& a, const AttentionSizes& s)
    : op_(op),
      s_(s),
      element_(Element(float_index(a.query.scalar_type()))),
      query_(to_contiguous(a.query)),
      query_rope_(to_contiguous(a.query_rope)),
      kv_cache_(keys_of(op, "kv_cache", a.kv_cache)),
      kr_cache_(keys_of(op, "kr_cache", a.kr_cache)),
      selection_(selection_of(op, a, s)),
      scale_(static_cast<float>(a.scale)) {}

void Attention::run(const Tensor& out, float* log_sum_exp) const {
  if (s_.N1 == 0 || selection_.rows().empty()) return;
  const Rows rows(*this, static_cast<char*>(out.mutable_data_ptr()), log_sum_exp);
  attend(rows, {kernels().attend[static_cast<int>(element_)], kernels().attend_panel, s_.N1,
                bytes_of(element_)});
}

}  // namespace custom_pypto_sparse_attention
