// What kernels are written with: checks, dtypes, allocation, the parallel loop.
#include <custom_pypto/check.h>
#include <custom_pypto/dtype.h>
#include <custom_pypto/empty.h>
#include <custom_pypto/parallel.h>
#include <custom_pypto/plugin.h>

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cp = custom_pypto;
using cp::Arg;
using cp::ScalarArg;
using cp::ScalarType;
using torch::stable::Tensor;

namespace {

void check(std::string_view name, const Tensor& self, const Tensor& other, int64_t k, double scale,
           const std::string& layout) {
  const Arg a("headers_check", "self", self);
  const Arg b("headers_check", "other", other);
  const std::map<std::string_view, std::function<void()>> cases{
      {"rank", [&] { a.rank(3); }},
      {"rank_with_meaning", [&] { a.rank(3, "[T, N, D] for layout 'TND'"); }},
      {"ranks", [&] { a.rank({1, 3, 4}); }},
      {"dtype", [&] { a.dtype(ScalarType::Half); }},
      {"dtypes", [&] { a.dtype({ScalarType::Half, ScalarType::BFloat16, ScalarType::Long}); }},
      {"same_dtype", [&] { b.same_dtype(a); }},
      {"same_device", [&] { b.same_device(a); }},
      {"same_shape", [&] { b.same_shape(a); }},
      {"size", [&] { a.size(-1, 128, "the head size"); }},
      {"size_of_no_dimension", [&] { a.size(2, 128, "the head size"); }},
      {"shape", [&] { a.shape({2, -1, 4}); }},
      {"contiguous", [&] { a.contiguous(); }},
      {"at_least", [&] { ScalarArg("headers_check", "k", k).at_least(1); }},
      {"at_most", [&] { ScalarArg("headers_check", "k", k).at_most(-1); }},
      {"in_range", [&] { ScalarArg("headers_check", "k", k).in_range(1, 8); }},
      {"one_of_ints", [&] { ScalarArg("headers_check", "k", k).one_of({3, 4}); }},
      {"float", [&] { ScalarArg("headers_check", "scale", scale).at_least(0.25); }},
      {"one_of", [&] { ScalarArg("headers_check", "layout", layout).one_of({"BSND", "TND"}); }},
      {"fail", [&] { cp::fail("headers_check", "self", "odd: ", self, ' ', layout, ' ', true); }},
      {"fail_op", [&] { cp::fail("headers_check", nullptr, "has no ", self.sizes()); }},
      {"check", [&] { cp::check(k > 0, "headers_check", "k", "must be odd, got ", k); }},
      {"chain",
       [&] { a.rank(2, "rows").dtype(ScalarType::Float).size(0, 2, "rows").contiguous(); }},
      {"visit",
       [&] {
         cp::visit_dtype<cp::Half, cp::BFloat16>("headers_check", "self", self.scalar_type(),
                                                 [](auto) {});
       }},
  };
  cases.at(name)();
}

int64_t element_size(const Tensor& self) {
  return cp::visit_dtype<float, double, cp::Half, cp::BFloat16, int8_t, uint8_t, int16_t, int32_t,
                         int64_t, bool>(
      "headers_element_size", "self", self.scalar_type(), [&](auto tag) -> int64_t {
        using T = typename decltype(tag)::type;
        cp::check(cp::dtype_of<T> == self.scalar_type(), "headers_element_size", "self", "differs");
        cp::check(cp::dtype_size(cp::dtype_of<T>) == sizeof(T), "headers_element_size", "self",
                  "has elements of another size");
        return sizeof(T);
      });
}

Tensor make(const std::vector<int64_t>& sizes, ScalarType dtype, cp::Device device) {
  return cp::empty(sizes, dtype, device);
}

std::vector<Tensor> make_like(const Tensor& like) {
  const int64_t rows = like.numel();
  return {cp::empty_like_contiguous(like), cp::empty({rows, 2}, like),
          cp::empty({rows, 2}, ScalarType::Int, like)};
}

// How often nested loops visit each pair of indices.
Tensor visits(int64_t outer, int64_t inner, int64_t grain) {
  Tensor counts =
      cp::empty({outer, inner}, ScalarType::Int, cp::Device(torch::headeronly::DeviceType::CPU));
  auto* data = static_cast<int32_t*>(counts.mutable_data_ptr());
  std::fill(data, data + outer * inner, 0);
  cp::parallel_for(0, outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      cp::parallel_for(0, inner, grain, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) ++data[row * inner + i];
      });
    }
  });
  return counts;
}

// std::out_of_range, so that a lost type shows: in Python it is an IndexError.
void throw_in_loop(int64_t at) {
  cp::parallel_for(0, 64, 1, [&](int64_t begin, int64_t end) {
    if (at < begin || at >= end) return;
    cp::parallel_for(0, 4, 1, [&](int64_t, int64_t) {
      throw std::out_of_range("headers_throw_in_loop: row " + std::to_string(at));
    });
  });
}

int64_t threads() {
  const int64_t index = cp::thread_index();
  return index == 0 ? cp::num_threads() : -1;
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin
      .def(CUSTOM_PYPTO_SCHEMA("headers_check(str name, Tensor self, Tensor other, int k=0, "
                               "float scale=0.0, str layout='') -> ()"))
      .impl<&check>("CompositeExplicitAutograd");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_element_size(Tensor self) -> int"))
      .impl<&element_size>("CPU");
  plugin
      .def(CUSTOM_PYPTO_SCHEMA(
          "headers_make(int[] sizes, ScalarType dtype, Device device) -> Tensor"))
      .impl<&make>("CompositeExplicitAutograd");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_make_like(Tensor like) -> Tensor[]"))
      .impl<&make_like>("CompositeExplicitAutograd");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_visits(int outer, int inner, int grain) -> Tensor"))
      .impl<&visits>("CompositeExplicitAutograd");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_throw_in_loop(int at) -> ()"))
      .impl<&throw_in_loop>("CompositeExplicitAutograd");
  plugin.def(CUSTOM_PYPTO_SCHEMA("headers_threads() -> int"))
      .impl<&threads>("CompositeExplicitAutograd");
}
