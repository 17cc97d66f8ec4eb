// The ops of hyper-connections on the CPU, and their registration. ops.toml has checked the
// arguments.
#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/tensor_ops.h>
#include <custom_pypto_blocks/divide.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/scratch.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "cpu/mhc_kernels.h"
#include "registered.h"
#include "sinkhorn_tiles.h"

namespace custom_pypto_mhc {
namespace {

using namespace custom_pypto;
using Pre = ops::npu_mhc_pre;
using PreGrad = ops::npu_mhc_pre_backward;
using Post = ops::npu_mhc_post;
using PostGrad = ops::npu_mhc_post_backward;
using Sinkhorn = ops::npu_mhc_sinkhorn;
using SinkhornGrad = ops::npu_mhc_sinkhorn_backward;

// The fewest elements that are worth another thread.
constexpr int64_t kGrain = 1 << 15;
// Columns of phi whose gradients are computed together: these and phi's own fit the L1 cache.
constexpr int64_t kGradColumns = 128;

constexpr bool is_double(ScalarType dtype) { return dtype == ScalarType::Double; }

const Kernels& kernels_of(const Tensor& x) {
  const ScalarType dtype = x.scalar_type();
  return kernels().of_dtype[is_double(dtype) ? kFloatElements : float_index(dtype)];
}

// The place of the kernels for n streams.
int64_t place_of(int64_t streams) { return streams / 2 - 2; }

Sizes sizes_of(const Tensor& x, int64_t rows = 0) {
  const int64_t columns = x.size(x.dim() - 1);
  const int64_t streams = x.size(x.dim() - 2);
  return {x.numel() / (streams * columns), streams, columns, streams * columns, rows};
}

// The data of arguments, made contiguous: null without a tensor. It keeps copies alive. Kernels
// write to no argument, though a call has some as void*.
class Inputs {
 public:
  void* operator()(const Tensor& tensor) {
    if (tensor.is_contiguous()) return const_cast<void*>(tensor.const_data_ptr());
    copies_.push_back(to_contiguous(tensor));
    return copies_.back().mutable_data_ptr();
  }
  void* operator()(const std::optional<Tensor>& tensor) {
    return tensor.has_value() ? (*this)(*tensor) : nullptr;
  }

 private:
  std::vector<Tensor> copies_;
};

void* data_of(const Tensor& output) { return output.mutable_data_ptr(); }

// Runs a kernel for ranges of tokens, in parallel.
template <class Call>
void for_tokens(const Sizes& sizes, void (*kernel)(const Call&, Range), const Call& call) {
  parallel_for(0, sizes.tokens, divide_up(kGrain, sizes.depth),
               [&](int64_t begin, int64_t end) { kernel(call, {begin, end - begin}); });
}

// phi, rounded to HF32 where a call asks for that.
Tensor phi_of(const Pre::Arguments& a) {
  const Tensor phi = to_contiguous(a.phi);
  if (a.inner_precise == 0 || is_double(phi.scalar_type())) return phi;
  const Tensor rounded = empty({phi.size(0), phi.size(1)}, ScalarType::Float, phi);
  const auto* from = static_cast<const float*>(phi.const_data_ptr());
  auto* to = static_cast<float*>(rounded.mutable_data_ptr());
  parallel_for(0, phi.numel(), kGrain, [&](int64_t begin, int64_t end) {
    kernels().round_to_hf32(from + begin, end - begin, to + begin);
  });
  return rounded;
}

void pre_cpu(const Pre::Arguments& a, const Pre::CallShape&, const Pre::Outputs& out) {
  const Sizes sizes = sizes_of(a.x, a.phi.size(0));
  if (sizes.tokens == 0) return;
  const Kernels& kernel = kernels_of(a.x);
  const ScalarType number = a.alpha.scalar_type();
  const bool is_kept = a.out_flag == 1;
  const Tensor h_mix = is_kept ? out.h_mix : empty({sizes.tokens, sizes.rows}, number, a.x);
  const Tensor inv_rms = is_kept ? out.inv_rms : empty({sizes.tokens}, number, a.x);
  const Tensor phi = phi_of(a);
  Inputs data;
  const PreCall call = {sizes,
                        data(a.x),
                        data(phi),
                        data(a.gamma),
                        data(a.alpha),
                        a.hc_eps,
                        data_of(h_mix),
                        data_of(inv_rms),
                        is_kept ? data_of(out.h_pre) : nullptr,
                        data_of(out.h_post),
                        data(a.bias),
                        a.norm_eps,
                        a.inner_precise == 1,
                        data_of(out.h_res),
                        data_of(out.h_in)};
  const int64_t threads = num_threads();
  const int64_t together = std::clamp<int64_t>(divide_up(sizes.tokens, 4 * threads), 1, kMixTokens);
  const int64_t blocks = divide_up(sizes.tokens, together);
  // Few tokens: threads share the rows of phi.
  const int64_t parts = blocks >= threads ? 1 : std::min(2 * threads, sizes.rows);
  const int64_t rows_of_part = divide_up(sizes.rows, parts);
  const int64_t work = together * rows_of_part * sizes.depth;
  parallel_for(0, blocks * parts, divide_up(kGrain, work), [&](int64_t begin, int64_t end) {
    char* scratch =
        Scratch::of_thread(kMixTokens * kMixDepth * static_cast<int64_t>(sizeof(double)));
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit / parts * together;
      const int64_t row = unit % parts * rows_of_part;
      const Range tokens = {first, std::min(together, sizes.tokens - first)};
      kernel.mix(call, tokens, {row, std::min(rows_of_part, sizes.rows - row)}, scratch);
      if (parts == 1) kernel.pre(call, tokens);
    }
  });
  if (parts > 1) for_tokens(sizes, kernel.pre, call);
}

void pre_grad_cpu(const PreGrad::Arguments& a, const PreGrad::CallShape& s,
                  const PreGrad::Outputs& out) {
  const Sizes sizes = sizes_of(a.x, a.phi.size(0));
  const Kernels& kernel = kernels_of(a.x);
  const ScalarType number = a.alpha.scalar_type();
  const Tensor grad_bias = empty({sizes.tokens, sizes.rows}, number, a.x);
  const Tensor grad_mix = empty({sizes.tokens, sizes.rows}, number, a.x);
  const Tensor x_factor = empty({sizes.tokens}, number, a.x);
  Inputs data;
  void* const h_mix = data(a.h_mix);
  void* const inv_rms = data(a.inv_rms);
  PreGradCall call = {{sizes, data(a.x), data(a.phi), data(a.gamma), data(a.alpha), a.hc_eps, h_mix,
                       inv_rms, data(a.h_pre), data(a.h_post), nullptr, 0, false, nullptr, nullptr},
                      data(a.grad_h_in),
                      data(a.grad_h_post),
                      data(a.grad_h_res),
                      data(a.grad_x_post),
                      data_of(grad_bias),
                      data_of(grad_mix),
                      data_of(x_factor),
                      data_of(out.grad_x),
                      data_of(out.grad_phi),
                      data_of(out.grad_gamma)};
  for_tokens(sizes, kernel.pre_grad_tokens, call);

  const int64_t parts = divide_up(sizes.columns, kGradColumns);
  const int64_t work = kGradColumns * (sizes.tokens + 1) * sizes.rows;
  parallel_for(0, sizes.streams * parts, divide_up(kGrain, work), [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % parts * kGradColumns;
      kernel.pre_grad_columns(call, unit / parts,
                              {first, std::min(kGradColumns, sizes.columns - first)});
    }
  });

  visit_dtype<float, double>(PreGrad::name, "alpha", number, [&](auto tag) {
    using Number = typename decltype(tag)::type;
    const auto* parts_of_bias = static_cast<const Number*>(grad_bias.const_data_ptr());
    const auto* mix = static_cast<const Number*>(h_mix);
    const auto* factors = static_cast<const Number*>(inv_rms);
    auto* bias = static_cast<Number*>(data_of(out.grad_bias));
    double of_alpha[3] = {};
    for (int64_t row = 0; row < sizes.rows; ++row) {
      double of_bias = 0;
      const int64_t kind = row < 2 * s.n ? row / s.n : 2;
      for (int64_t token = 0; token < sizes.tokens; ++token) {
        const double grad = parts_of_bias[token * sizes.rows + row];
        of_bias += grad;
        of_alpha[kind] += grad * mix[token * sizes.rows + row] * factors[token];
      }
      bias[row] = static_cast<Number>(of_bias);
    }
    for (int64_t i = 0; i < s.A; ++i) {
      static_cast<Number*>(data_of(out.grad_alpha))[i] = static_cast<Number>(of_alpha[i]);
    }
  });
}

void post_cpu(const Post::Arguments& a, const Post::CallShape&, const Post::Outputs& out) {
  const Sizes sizes = sizes_of(a.x);
  Inputs data;
  const PostCall call = {sizes,         data(a.x),      data(a.h_res),
                         data(a.h_out), data(a.h_post), data_of(out.y)};
  for_tokens(sizes, kernels_of(a.x).post[place_of(sizes.streams)], call);
}

void post_grad_cpu(const PostGrad::Arguments& a, const PostGrad::CallShape&,
                   const PostGrad::Outputs& out) {
  const Sizes sizes = sizes_of(a.x);
  Inputs data;
  const PostGradCall call = {
      {sizes, data(a.x), data(a.h_res), data(a.h_out), data(a.h_post), nullptr},
      data(a.grad_y),
      data_of(out.grad_x),
      data_of(out.grad_h_res),
      data_of(out.grad_h_out),
      data_of(out.grad_h_post)};
  for_tokens(sizes, kernels_of(a.x).post_grad[place_of(sizes.streams)], call);
}

// Runs a kernel for the tiles of x, which y is like.
void run_tiles(void (*kernel)(const SinkhornTask&), const Tensor& x, int64_t iterations, double eps,
               const Tensor& y, void* norm, void* sum) {
  const int64_t n = x.size(x.dim() - 1);
  const int64_t tokens = x.numel() / (n * n);
  if (tokens == 0) return;
  const SinkhornTiles tiles(tokens, n);
  Inputs data;
  void* const from = data(x);
  const auto at = [&](void* numbers, int64_t place) -> void* {
    const int64_t bytes = static_cast<int64_t>(x.element_size());
    return numbers == nullptr ? nullptr : static_cast<char*>(numbers) + place * bytes;
  };
  const int64_t work = divide_up(tokens, tiles.count()) * iterations * n * n;
  parallel_for(0, tiles.count(), divide_up(kGrain, work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const TokenRange tile = tiles[i];
      const int64_t rows = 2 * iterations * tile.first * ops::ROW;
      const int64_t place = tile.first * n * n;
      kernel({tile.count, iterations, eps, at(from, place), at(data_of(y), place),
              at(norm, rows * n), at(sum, rows)});
    }
  });
}

void sinkhorn_cpu(const Sinkhorn::Arguments& a, const Sinkhorn::CallShape& s,
                  const Sinkhorn::Outputs& out) {
  const auto kept = [&](const Tensor& tensor) {
    return a.out_flag == 1 ? data_of(tensor) : nullptr;
  };
  run_tiles(kernels().sinkhorn[is_double(a.x.scalar_type())][place_of(s.n)], a.x, a.num_iters,
            a.eps, out.y, kept(out.norm), kept(out.sum));
}

void sinkhorn_grad_cpu(const SinkhornGrad::Arguments& a, const SinkhornGrad::CallShape& s,
                       const SinkhornGrad::Outputs& out) {
  const int64_t tokens = a.grad_y.numel() / (s.n * s.n);
  if (tokens == 0) return;
  Inputs data;
  run_tiles(kernels().sinkhorn_grad[is_double(a.norm.scalar_type())][place_of(s.n)], a.grad_y,
            s.N / (2 * ops::ROW * tokens), 0, out.grad_x, data(a.norm), data(a.sum));
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<Pre>().impl<&pre_cpu>("CPU").impl<&pre_npu>("PrivateUse1");
  plugin.def<PreGrad>().impl<&pre_grad_cpu>("CPU").impl<&pre_grad_npu>("PrivateUse1");
  plugin.def<Sinkhorn>().impl<&sinkhorn_cpu>("CPU").impl<&sinkhorn_npu>("PrivateUse1");
  plugin.def<SinkhornGrad>().impl<&sinkhorn_grad_cpu>("CPU").impl<&sinkhorn_grad_npu>(
      "PrivateUse1");
  plugin.def<Post>().impl<&post_cpu>("CPU").impl<&post_npu>("PrivateUse1");
  plugin.def<PostGrad>().impl<&post_grad_cpu>("CPU").impl<&post_grad_npu>("PrivateUse1");
}

}  // namespace custom_pypto_mhc
