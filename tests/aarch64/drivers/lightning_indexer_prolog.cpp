// The kernels of the lightning indexer's prolog, called as the op calls them, by one thread.
#include <custom_pypto/cpu/element.h>

#include <stdexcept>

#include "cpu/kernels.h"
#include "products.h"
#include "wire.h"

namespace custom_pypto_lightning_indexer_prolog {
namespace {

using custom_pypto::Element;
using driver::Bytes;
using driver::read_integer;

constexpr int64_t kRotate = 2;
constexpr int64_t kQuantise = 3;

const custom_pypto::cpu::MatmulKernel& product_of(int64_t element) {
  const auto kind = static_cast<Element>(element);
  if (kind == Element::int8) return kernels().int8;
  if (kind == Element::bf16) return kernels().bf16;
  if (kind == Element::fp32) return kernels().fp32;
  throw std::runtime_error("the op has no product of this dtype");
}

// Heads of one token, from int32 sums to rotated bf16 numbers.
void rotate() {
  HeadTask task{};
  task.size = read_integer();
  task.rotated = read_integer();
  task.token_scale = static_cast<float>(driver::read_number<double>());
  const Bytes sums = driver::read_bytes();
  const Bytes column_scales = driver::read_bytes();
  const Bytes sin = driver::read_bytes();
  const Bytes cos = driver::read_bytes();
  task.sin = sin.as<float>();
  task.cos = cos.as<float>();
  const Bytes scratch((task.size + task.rotated) * 4);
  task.scratch = scratch.as<float>();
  const int64_t count = sums.size() / 4;
  const Bytes out(count * 2);
  for (int64_t first = 0; first < count; first += task.size) {
    task.sums = sums.as<int32_t>() + first;
    task.column_scales = column_scales.as<float>() + first;
    task.out = out.as() + first * 2;
    kernels().rotate_head(task);
  }
  driver::write_bytes(out.as(), out.size());
}

// Rows of fp32 numbers, rounded to bf16 and then to int8.
void quantise() {
  const int64_t size = read_integer();
  const Bytes numbers = driver::read_bytes();
  const int64_t count = numbers.size() / 4;
  const Bytes rounded(count * 2);
  const Bytes out(count);
  const Bytes scales(count / size * 2);
  const Bytes scratch(size * 4);
  kernels().round_to_bf16(numbers.as<float>(), count, rounded.as());
  for (int64_t row = 0; row < count / size; ++row) {
    kernels().quantise(rounded.as() + row * size * 2, size, out.as<int8_t>() + row * size,
                       scales.as() + row * 2, scratch.as<float>());
  }
  driver::write_bytes(out.as(), out.size());
  driver::write_bytes(scales.as(), scales.size());
}

void answer(int64_t request) {
  if (request == driver::kMatmul) return driver::multiply(product_of);
  if (request == kRotate) return rotate();
  if (request == kQuantise) return quantise();
  throw std::runtime_error("no such request");
}

}  // namespace
}  // namespace custom_pypto_lightning_indexer_prolog

int main() {
  using namespace custom_pypto_lightning_indexer_prolog;
  return driver::serve(answer);
}
