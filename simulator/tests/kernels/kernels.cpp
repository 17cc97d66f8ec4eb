// Simulated kernels that the tests launch; some misbehave.
#include <custom_pypto_simulator/aclnn.h>
#include <custom_pypto_simulator/contiguous.h>

namespace sim = custom_pypto_simulator;

CUSTOM_PYPTO_SIM_ACLNN(aclnnTestAdd, at::Tensor self, at::Tensor other, at::Tensor& out) {
  out.copy_(self.add(other));
}

static uint64_t bytes_of(const at::Tensor& self, const at::Tensor&) { return self.nbytes(); }

// Doubles through its workspace.
CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnTestWorkspace, bytes_of, at::Tensor self, at::Tensor& out) {
  const auto space = at::from_blob(sim::workspace().data, self.sizes(), self.options());
  space.copy_(self);
  out.copy_(space.add(space));
}

CUSTOM_PYPTO_SIM_ACLNN_PLANNED(aclnnTestContiguous, sim::contiguous, std::vector<at::Tensor> list,
                               std::optional<at::Tensor> other, at::Tensor& out) {
  out.copy_(list.at(0).add(other.value_or(list.at(1))));
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnTestThrow, at::Tensor self, at::Tensor& out) {
  (void)self;
  (void)out;
  throw std::runtime_error("this kernel always fails");
}

// A mistake that an author can make.
CUSTOM_PYPTO_SIM_ACLNN(aclnnTestAssign, at::Tensor self, at::Tensor& out) { out = self.add(self); }

CUSTOM_PYPTO_SIM_ACLNN(aclnnTestOverrun, at::Tensor self, at::Tensor& out) {
  out.copy_(self);
  static_cast<char*>(out.data_ptr())[out.nbytes() + 40] = 1;
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnTestBump, at::Tensor& cacheRef, at::Tensor amount, at::Tensor& total) {
  cacheRef.add_(amount);
  total.copy_(cacheRef.sum());
}

CUSTOM_PYPTO_SIM_ACLNN(aclnnTestScale, at::Tensor self, double factor, at::Tensor& out) {
  out.copy_(self.mul(factor));
}

// Replaces an operator.
CUSTOM_PYPTO_SIM_ACLNN(aclnnTanh, at::Tensor x, at::Tensor& y) { y.fill_(x.numel()); }
