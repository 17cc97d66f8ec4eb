#include <custom_pypto/dtype.h>
#include <torch/csrc/stable/ops.h>

#include "ops.h"

using custom_pypto::Tensor;

static void add_products(const ops::add_products_::Arguments& a,
                         const ops::add_products_::CallShape& s,
                         const ops::add_products_::Outputs&) {
  const Tensor columns = torch::stable::contiguous(a.columns);
  custom_pypto::visit_dtype<float, double>(
      "add_products_", "columns", columns.scalar_type(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (int64_t i = 0; i < s.E; ++i) {
          const Tensor rows = torch::stable::contiguous(a.rows[i]);
          const Tensor& total = a.totals[i];
          for (int64_t m = 0; m < s.M[i]; ++m) {
            for (int64_t n = 0; n < s.N; ++n) {
              T sum = 0;
              for (int64_t k = 0; k < s.K; ++k) {
                sum += rows.template const_data_ptr<T>()[m * s.K + k] *
                       columns.template const_data_ptr<T>()[k * s.N + n];
              }
              total.template mutable_data_ptr<T>()[m * total.stride(0) + n] += sum;
            }
          }
        }
      });
}

CUSTOM_PYPTO_PLUGIN(plugin) { plugin.def<ops::add_products_>().impl<&add_products>("CPU"); }
