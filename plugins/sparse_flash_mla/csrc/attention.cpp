// Attention on the CPU: the rows of each token, and where its results are.
#include "attention.h"

#include <custom_pypto/dtype.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_sparse_attention/attend_rows.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cpu/mla_kernels.h"

namespace custom_pypto_sparse_flash_mla {
namespace {

using custom_pypto_sparse_attention::AttendRows;
using custom_pypto_sparse_attention::AttendTask;
using custom_pypto_sparse_attention::Keys;

float* lse_of(const Forward::Arguments& a, const Forward::Outputs& outputs) {
  return a.return_softmax_lse ? outputs.lse.mutable_data_ptr<float>() : nullptr;
}

// The tokens of a call, as the tile loops read them.
class Tokens final : public AttendRows {
 public:
  Tokens(const Forward::Arguments& a, const Forward::CallShape& s, const Forward::Outputs& outputs)
      : rows_(visible_rows(a, s)),
        q_(to_contiguous(a.q)),
        sinks_(read_sinks<float>(a.sinks)),
        out_(static_cast<char*>(outputs.out.mutable_data_ptr())),
        lse_(lse_of(a, outputs)),
        scale_(static_cast<float>(a.softmax_scale)),
        heads_(s.N),
        columns_(s.D),
        bytes_(bytes_of(element_of(a.q.scalar_type()))) {}

  int64_t count() const override { return static_cast<int64_t>(rows_.queries().size()); }
  int64_t most_keys(int64_t row) const override { return rows_.most(row); }

  void select(int64_t row, Keys& keys) const override {
    keys.latent.clear();
    keys.latent.reserve(static_cast<std::size_t>(rows_.most(row)));
    rows_.for_each(row, [&](const Rows& rows, int64_t slot, int64_t) {
      keys.latent.push_back(rows.row(slot));
    });
    // A row has no rotated part of its own.
    keys.rope = keys.latent;
  }

  AttendTask task(int64_t row, int64_t first_head, int64_t heads) const override {
    const int64_t head = row * heads_ + first_head;
    AttendTask task = {};
    task.heads = heads;
    task.latent = columns_;
    task.query = static_cast<const char*>(q_.const_data_ptr()) + head * columns_ * bytes_;
    task.query_head_stride = columns_;
    task.query_rope = task.query;
    task.scale = scale_;
    task.out = out_ + head * columns_ * bytes_;
    task.out_head_stride = columns_;
    task.log_sum_exp = lse_ == nullptr ? nullptr : lse_ + head;
    task.sinks = sinks_.empty() ? nullptr : sinks_.data() + first_head;
    return task;
  }

 private:
  VisibleRows rows_;
  Tensor q_;
  std::vector<float> sinks_;
  char* out_;
  float* lse_;
  float scale_;
  int64_t heads_;
  int64_t columns_;
  int64_t bytes_;
};

}  // namespace

VisibleRows visible_rows(const Forward::Arguments& a, const Forward::CallShape& s) {
  const auto table = [](const std::optional<Tensor>& of) { return of ? &*of : nullptr; };
  return VisibleRows(Forward::name, ops::visible::arguments(a), ops::visible::call_shape(s),
                     ori_arguments(a, table(a.ori_block_table)),
                     cmp_arguments(a, table(a.cmp_block_table)));
}

void attention(const Forward::Arguments& a, const Forward::CallShape& s,
               const Forward::Outputs& outputs) {
  const int index = float_index(a.q.scalar_type());
  attend(Tokens(a, s, outputs),
         {kernels().attend[index], kernels().attend_panel, s.N, bytes_of(Element(index))});
}

void attention_fp64(const Forward::Arguments& a, const Forward::CallShape& s,
                    const Forward::Outputs& outputs) {
  const VisibleRows rows = visible_rows(a, s);
  const Tensor q = to_contiguous(a.q);
  const std::vector<double> sinks = read_sinks<double>(a.sinks);
  float* const lse = lse_of(a, outputs);
  const auto queries = static_cast<int64_t>(rows.queries().size());
  parallel_for(0, queries, 1, [&](int64_t begin, int64_t end) {
    std::vector<const double*> keys;
    std::vector<double> weights;
    for (int64_t query = begin; query < end; ++query) {
      keys.clear();
      rows.for_each(query, [&](const Rows& of, int64_t slot, int64_t) {
        keys.push_back(reinterpret_cast<const double*>(of.row(slot)));
      });
      weights.resize(keys.size());
      for (int64_t head = 0; head < s.N; ++head) {
        const int64_t at = query * s.N + head;
        const double* const of_head = q.const_data_ptr<double>() + at * s.D;
        double* const out = outputs.out.mutable_data_ptr<double>() + at * s.D;
        double maximum = -std::numeric_limits<double>::infinity();
        if (!sinks.empty() && !keys.empty()) maximum = sinks[static_cast<std::size_t>(head)];
        for (std::size_t i = 0; i < keys.size(); ++i) {
          double dot = 0;
          for (int64_t d = 0; d < s.D; ++d) dot += of_head[d] * keys[i][d];
          weights[i] = dot * a.softmax_scale;
          maximum = std::max(maximum, weights[i]);
        }
        double sum = 0;
        if (!sinks.empty()) sum = std::exp(sinks[static_cast<std::size_t>(head)] - maximum);
        for (double& weight : weights) sum += weight = std::exp(weight - maximum);
        std::fill_n(out, s.D, 0.0);
        for (std::size_t i = 0; i < keys.size(); ++i) {
          for (int64_t d = 0; d < s.D; ++d) out[d] += weights[i] / sum * keys[i][d];
        }
        if (lse == nullptr) continue;
        lse[at] = keys.empty() ? -std::numeric_limits<float>::infinity()
                               : static_cast<float>(maximum + std::log(sum));
      }
    }
  });
}

const Tensor& given_tensor(const Metadata::Arguments& a) {
  const std::pair<const char*, const std::optional<Tensor>&> tensors[] = {
      {"cu_seqlens_q", a.cu_seqlens_q},           {"cu_seqlens_ori_kv", a.cu_seqlens_ori_kv},
      {"cu_seqlens_cmp_kv", a.cu_seqlens_cmp_kv}, {"seqused_q", a.seqused_q},
      {"seqused_ori_kv", a.seqused_ori_kv},       {"seqused_cmp_kv", a.seqused_cmp_kv},
      {"cmp_residual_kv", a.cmp_residual_kv},     {"ori_topk_length", a.ori_topk_length},
      {"cmp_topk_length", a.cmp_topk_length}};
  const std::pair<const char*, const std::optional<Tensor>&>* first = nullptr;
  for (const auto& each : tensors) {
    if (!each.second) continue;
    if (first == nullptr) first = &each;
    const Device device = first->second->device();
    check(each.second->device() == device, Metadata::name, each.first, "must be on the device of '",
          first->first, "' (", device, "), got ", each.second->device());
  }
  return *first->second;
}

}  // namespace custom_pypto_sparse_flash_mla
