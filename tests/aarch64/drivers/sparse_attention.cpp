// The kernels of sparse attention, called as the ops call them, by one thread.
#include <algorithm>
#include <vector>

#include "cpu/kernels.h"
#include "products.h"
#include "wire.h"

namespace custom_pypto_sparse_attention {
namespace {

using driver::Bytes;
using driver::read_integer;

std::vector<const void*> read_addresses(const Bytes& storage, int64_t bytes) {
  const Bytes offsets = driver::read_bytes();
  std::vector<const void*> addresses;
  for (int64_t i = 0; i < offsets.size() / 8; ++i) {
    addresses.push_back(storage.as() + offsets.as<int64_t>()[i] * bytes);
  }
  return addresses;
}

// Rows of attention, each to its own keys, `heads_at_a_time` heads at a time.
void attend() {
  const int64_t element = read_integer();
  const int64_t bytes = custom_pypto::bytes_of(static_cast<Element>(element));
  const int64_t heads_at_a_time = read_integer();
  const int64_t heads = read_integer();
  AttendTask task{};
  task.latent = read_integer();
  task.rope = read_integer();
  task.scale = static_cast<float>(driver::read_number<double>());
  task.query_head_stride = task.latent;
  task.query_rope_head_stride = task.rope;
  task.out_head_stride = task.latent;
  const Bytes query = driver::read_bytes();
  const Bytes query_rope = driver::read_bytes();
  const Bytes latents = driver::read_bytes();
  const Bytes ropes = driver::read_bytes();
  const AttendKernels& attend = kernels().attend[element];
  for (int64_t row = 0, rows = read_integer(); row < rows; ++row) {
    const int64_t first_head = read_integer() * heads;
    const std::vector<const void*> latent_rows = read_addresses(latents, bytes);
    const std::vector<const void*> rope_rows = read_addresses(ropes, bytes);
    const Bytes out(heads * task.latent * bytes);
    const Bytes log_sum_exp(heads * 4);
    task.latent_rows = latent_rows.data();
    task.rope_rows = rope_rows.data();
    task.count = static_cast<int64_t>(latent_rows.size());
    for (int64_t head = 0; head < heads; head += heads_at_a_time) {
      task.heads = std::min(heads_at_a_time, heads - head);
      task.query = query.as() + (first_head + head) * task.latent * bytes;
      task.query_rope = query_rope.as() + (first_head + head) * task.rope * bytes;
      task.out = out.as() + head * task.latent * bytes;
      task.log_sum_exp = log_sum_exp.as<float>() + head;
      const Bytes scratch(attend.scratch_bytes(task.heads, task.latent, task.rope));
      const int64_t size = attend.partial_bytes(task.heads, task.latent);
      const Bytes partial(size);
      const Bytes next(size);
      attend.start(task, scratch.as());
      attend.run_range(task, 0, partial.as(), scratch.as());
      for (int64_t range = 1; range < attend_ranges(task.count); ++range) {
        attend.run_range(task, range, next.as(), scratch.as());
        attend.merge(task, partial.as(), next.as());
      }
      attend.write(task, partial.as());
    }
    driver::write_bytes(out.as(), out.size());
    driver::write_bytes(log_sum_exp.as(), log_sum_exp.size());
  }
}

void answer(int64_t request) {
  if (request == driver::kMatmul) {
    return driver::multiply(
        [](int64_t element) -> const auto& { return kernels().matmul[element]; });
  }
  attend();
}

}  // namespace
}  // namespace custom_pypto_sparse_attention

int main() {
  using namespace custom_pypto_sparse_attention;
  return driver::serve(answer);
}
