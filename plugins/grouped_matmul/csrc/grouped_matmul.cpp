// npu_grouped_matmul on CPUs and NPUs, and its registration.
#include <custom_pypto/empty.h>
#include <custom_pypto/npu/kernel_choice.h>
#include <custom_pypto/npu/launch.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/linear.h>
#include <custom_pypto_blocks/torch_product.h>

#include "cpu/linear_kernels.h"
#include "ops.h"

namespace custom_pypto_grouped_matmul {
namespace {

using namespace custom_pypto;
using Op = ops::npu_grouped_matmul;
using Tensors = std::vector<Tensor>;

// Whether one tensor [E, K, N] has the weights of all groups.
bool is_one_weight(const Op::Arguments& a) { return a.weight[0].dim() == 3; }

bool has_one_output(const Op::Arguments& a) { return *a.group_type == 0; }

// The int4 numbers in one of int32.
constexpr int64_t kPacked = 8;

// Scales or offsets of weights: [(E,) N], or [(E,) groups, N].
void check_scales(const Op::Arguments& a, const Op::CallShape& s, const char* name,
                  const std::optional<Tensors>& scales) {
  for (int64_t i = 0; scales && i < s.W; ++i) {
    const auto& scale = (*scales)[i];
    const int64_t ndim = scale.dim();
    const int64_t batch = a.weight[i].dim() - 2;
    const int64_t depth = s.K[s.X == 1 ? 0 : i];
    const int64_t groups = ndim == batch + 2 ? scale.size(batch) : 1;
    check((ndim == batch + 1 || ndim == batch + 2) && scale.size(ndim - 1) == s.N[i] &&
              (batch == 0 || scale.size(0) == a.weight[i].size(0)),
          Op::name, {name, i}, "must be [N], or [groups, N], with E in front as weight has, got ",
          scale.sizes(), " for ", a.weight[i].sizes());
    check(depth > 0, Op::name, "x", "must have columns where weights have scales");
    check(groups == 1 || (groups > 0 && depth % groups == 0 && depth / groups % 32 == 0), Op::name,
          {name, i}, "must have groups of a multiple of 32 of the ", depth, " columns of x, got ",
          scale.sizes());
    check(ndim == (*a.antiquant_scale)[i].dim() && scale.numel() == (*a.antiquant_scale)[i].numel(),
          Op::name, {name, i}, "must have the shape of antiquant_scale, got ", scale.sizes());
  }
}

// What rules of ops.toml cannot say.
void check_shapes(const Op::Arguments& a, const Op::CallShape& s) {
  const bool is_grouped = has_one_output(a);
  for (int64_t i = 0; i < s.X; ++i) {
    const auto& x = a.x[i];
    check(x.dim() == 2 || (!is_grouped && x.dim() > 2 && x.dim() <= 6), Op::name, {"x", i},
          is_grouped ? "must be 2-D with group_type 0, got " : "must be 2-D to 6-D, got ",
          x.sizes());
  }
  for (int64_t i = 0; i < s.W; ++i) {
    const auto& weight = a.weight[i];
    check(weight.dim() == 2 || (is_grouped && s.X == 1 && s.W == 1), Op::name, {"weight", i},
          "must be 2-D: only with group_type 0, one x and one weight it is [E, K, N]; got ",
          weight.sizes());
    const int64_t depth = s.K[s.X == 1 ? 0 : i];
    const bool is_packed = weight.scalar_type() == ScalarType::Int;
    check(s.D[i] * (is_packed ? kPacked : 1) == depth, Op::name, {"weight", i}, "must have ",
          is_packed ? "an eighth of " : "", depth, " in dimension -2, as x has columns",
          is_packed
              ? " (int32 numbers pack 8 of int4 along K; pass the transposed view of [N, K/8])"
              : "",
          ", got ", weight.sizes());
    check(!is_grouped || s.N[i] == s.N[0], Op::name, {"weight", i}, "must have size ", s.N[0],
          " in dimension -1, as weight[0] has, with group_type 0, got ", weight.sizes());
  }
  check_scales(a, s, "antiquant_scale", a.antiquant_scale);
  check_scales(a, s, "antiquant_offset", a.antiquant_offset);
  if (a.group_list) {
    const int64_t groups = is_one_weight(a) ? a.weight[0].size(0) : s.W;
    check(s.G == groups, Op::name, "group_list", "must have ", groups,
          " values, as many as weights, got ", s.G);
  }
}

Tensors allocate(const Op::Arguments& a, const Op::CallShape& s) {
  Tensors results;
  int64_t rows = 0;
  for (int64_t i = 0; i < s.X; ++i) {
    rows += a.x[i].size(0);
    if (has_one_output(a)) continue;
    std::vector<int64_t> sizes(a.x[i].sizes().begin(), a.x[i].sizes().end());
    sizes.back() = s.N[i];
    results.push_back(empty(sizes, a.x[i]));
  }
  if (has_one_output(a)) results.push_back(empty({rows, s.N[0]}, a.x[0]));
  return results;
}

// x [.., columns] as [rows, columns].
Tensor as_rows(const Tensor& x, int64_t columns) {
  int64_t rows = 1;
  for (int64_t dim = 0; dim + 1 < x.dim(); ++dim) rows *= x.size(dim);
  return torch::stable::view(x, {rows, columns});
}

Tensor narrow(Tensor x, int64_t first, int64_t rows) {
  return torch::stable::narrow(x, 0, first, rows);
}

// The rows of each group. x are 2-D.
std::vector<int64_t> read_rows(const Op::Arguments& a, const Tensors& x) {
  std::vector<int64_t> rows;
  if (!a.group_list) {
    for (const Tensor& each : x) rows.push_back(each.size(0));
    return rows;
  }
  int64_t left = 0;
  for (const Tensor& each : x) left += each.size(0);
  const bool has_sums = a.group_list_type.value_or(0) == 0;
  const Tensor list = to_contiguous(*a.group_list);
  const int64_t* const values = list.const_data_ptr<int64_t>();
  int64_t before = 0;
  for (int64_t i = 0; i < list.numel(); ++i) {
    const int64_t least = has_sums ? before : 0;
    check(values[i] >= least && values[i] - least <= left, Op::name, "group_list",
          "must have values of ", least, " to ", least + left, " at [", i, "], got ", values[i]);
    rows.push_back(values[i] - least);
    const int64_t of_x = x.size() == 1 ? rows.back() : x[rows.size() - 1].size(0);
    check(rows.back() == of_x, Op::name, "group_list", "must give x[", i, "] its ", of_x,
          " rows, got ", rows.back());
    left -= rows.back();
    before = values[i];
  }
  return rows;
}

Tensors contiguous(const std::optional<Tensors>& tensors) {
  Tensors results;
  for (const Tensor& each : tensors.value_or(Tensors{})) results.push_back(to_contiguous(each));
  return results;
}

// Whether multiply_linear reads weights [.., K, N] where they are.
bool is_transposed(const Tensor& weight) {
  const int64_t k = weight.dim() - 2;
  return (weight.stride(k) == 1 || weight.size(k) == 1) &&
         (weight.stride(k + 1) == weight.size(k) || weight.size(k + 1) == 1);
}

Op::Outputs grouped_matmul_cpu(const Op::Arguments& a, const Op::CallShape& s) {
  check_shapes(a, s);
  Tensors x;
  for (int64_t i = 0; i < s.X; ++i) x.push_back(as_rows(to_contiguous(a.x[i]), s.K[i]));
  const ScalarType dtype = x[0].scalar_type();
  const ScalarType dtype_of_weight = a.weight[0].scalar_type();
  const bool is_scaled = dtype_of_weight != dtype;
  Tensors biases = contiguous(a.bias);
  if (is_scaled) {
    for (Tensor& each : biases) each = to_dtype(each, ScalarType::Float);
  }
  const bool has_own_bias = a.bias && biases[0].scalar_type() != dtype;
  const Tensors scales = contiguous(a.antiquant_scale);
  const Tensors offsets = contiguous(a.antiquant_offset);
  const std::vector<int64_t> rows = read_rows(a, x);
  const Tensors out = allocate(a, s);
  const auto& table = kernels();
  const auto& kernels_of_weight = !is_scaled                            ? table.same
                                  : dtype_of_weight == ScalarType::Char ? table.int8
                                                                        : table.int4;
  const cpu::LinearKernel& kernel = kernels_of_weight[float_index(dtype)];
  std::vector<cpu::LinearTask> tasks;
  Tensors copies;
  int64_t row = 0;  // of a tensor that has the rows of all groups
  for (std::size_t group = 0; group < rows.size(); row += rows[group++]) {
    if (rows[group] == 0) continue;
    const auto index = static_cast<int64_t>(group);
    const bool is_one = is_one_weight(a);
    const std::size_t of_weight = is_one ? 0 : group;
    const Tensor& given = x[x.size() == 1 ? 0 : group];
    const Tensor& result = out[has_one_output(a) ? 0 : group];
    const int64_t from = x.size() == 1 ? row : 0;
    const int64_t to = has_one_output(a) ? row : 0;
    const Tensor& weights = a.weight[of_weight];
    const int64_t columns = s.N[static_cast<int64_t>(of_weight)];
    const bool copied = !is_transposed(weights);
    const auto weight = [&] {
      const Tensor own = is_one ? torch::stable::select(weights, 0, index) : weights;
      return torch::stable::transpose(own, 0, 1);
    };
    if (!is_scaled && !has_own_bias && is_torch_faster(dtype, rows[group], copied)) {
      std::optional<Tensor> bias;
      if (a.bias) bias = is_one ? torch::stable::select(biases[0], 0, index) : biases[group];
      // The form with `out` ignores autocast, as this op does.
      call_op<Tensor>("aten::linear", "out", narrow(given, from, rows[group]), weight(), bias,
                      narrow(as_rows(result, columns), to, rows[group]));
      continue;
    }
    // The numbers of this group, of each tensor with `count` for a group.
    const auto of_group = [&](const Tensor& tensor, int64_t count) {
      return static_cast<const char*>(tensor.const_data_ptr()) +
             (is_one ? index * count : 0) * static_cast<int64_t>(tensor.element_size());
    };
    cpu::LinearTask task = {};
    task.count = rows[group];
    task.depth = given.size(1);
    task.rows =
        static_cast<const char*>(given.const_data_ptr()) + from * task.depth * kernel.element;
    task.weight = copied ? copies.emplace_back(to_contiguous(weight())).const_data_ptr()
                         : of_group(weights, weights.stride(0));
    if (a.bias) task.bias = of_group(biases[of_weight], columns);
    task.has_fp32_bias = has_own_bias;
    if (is_scaled) {
      const Tensor& scale = scales[of_weight];
      const bool has_groups = scale.dim() == weights.dim();
      const int64_t groups = has_groups ? scale.size(scale.dim() - 2) : 1;
      task.group = task.depth / groups;
      task.scale_stride = columns;
      task.scale = of_group(scale, groups * columns);
      if (a.antiquant_offset) task.offset = of_group(offsets[of_weight], groups * columns);
    }
    task.last = task.out_stride = columns;
    task.out = static_cast<char*>(result.mutable_data_ptr()) + to * columns * kernel.out_bytes;
    tasks.push_back(task);
  }
  multiply_linear(kernel, tasks);
  if (has_one_output(a) && row < out[0].size(0)) {
    Tensor rest = narrow(out[0], row, out[0].size(0) - row);
    torch::stable::zero_(rest);
  }
  return {out};
}

const npu::KernelChoice npu_kernels(Op::name, {"aclnnGroupedMatmulV5"});

Op::Outputs grouped_matmul_npu(const Op::Arguments& a, const Op::CallShape& s) {
  check_shapes(a, s);
  Op::check_limits(a, s);
  const Tensors out = allocate(a, s);
  if (has_no_elements(out)) return {out};
  const std::nullopt_t none = std::nullopt;
  CUSTOM_PYPTO_LAUNCH(npu_kernels.get(), aclnnGroupedMatmulV5, a.x, a.weight, a.bias, none, none,
                      a.antiquant_scale, a.antiquant_offset, none, a.group_list, none, none, none,
                      a.split_item.value_or(0), *a.group_type, a.group_list_type.value_or(0),
                      a.act_type.value_or(0), a.tuning_config, out, none, none);
  return {out};
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Op>().impl<&grouped_matmul_cpu>("CPU").impl<&grouped_matmul_npu>("PrivateUse1");
}

}  // namespace custom_pypto_grouped_matmul
