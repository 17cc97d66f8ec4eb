// The kernels of npu_advance_step_flashattn, for CPUs and on NPUs, and their registration.
#include <custom_pypto/message.h>
#include <custom_pypto/npu/direct_launch.h>
#include <custom_pypto/npu/kernel_choice.h>
#include <custom_pypto_blocks/paging.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "npu/adv_step_flash.h"
#include "ops.h"

namespace custom_pypto_advance_step {
namespace {

using custom_pypto::BlockTable;
using custom_pypto::Integers;
using ops::npu_advance_step_flashattn;
using torch::stable::Tensor;

// The number of the cache's blocks is not known here.
constexpr int64_t kAnyBlocks = std::numeric_limits<int64_t>::max();

// A row of what the op writes.
struct Row {
  int64_t token;
  int64_t position;
  int64_t length;
  int64_t slot;
};

// The values of a one-dimensional int32 or int64 tensor, which must outlive it, to be written.
class Writer {
 public:
  explicit Writer(const Tensor& tensor)
      : data_(tensor.mutable_data_ptr()),
        stride_(tensor.stride(0)),
        is_wide_(tensor.scalar_type() == torch::headeronly::ScalarType::Long) {}

  bool holds(int64_t value) const {
    return is_wide_ || (value >= std::numeric_limits<int32_t>::min() &&
                        value <= std::numeric_limits<int32_t>::max());
  }

  void write(int64_t row, int64_t value) const {
    if (is_wide_) {
      static_cast<int64_t*>(data_)[row * stride_] = value;
    } else {
      static_cast<int32_t*>(data_)[row * stride_] = static_cast<int32_t>(value);
    }
  }

 private:
  void* data_;
  int64_t stride_;
  bool is_wide_;
};

// Reads a call's arguments and computes its rows. Throws for values that no cache has.
class Step {
 public:
  Step(const npu_advance_step_flashattn::Arguments& a, int64_t blocks)
      : a_(a),
        blocks_(blocks),
        sampled_(a.sampled_token_ids),
        lengths_(a.seq_lens),
        table_(a.block_tables) {}

  Row row(int64_t query) const {
    Row row{};
    row.token = sampled_[query * a_.sampled_token_ids.stride(0)];
    row.position = lengths_[query * a_.seq_lens.stride(0)];
    if (row.position < 0 || row.position / a_.block_size >= blocks_) {
      fail("seq_lens", "must be from 0 to ", last_position(), " (", blocks_, " blocks of ",
           a_.block_size, " in a row of block_tables), got ", row.position, " for sequence ",
           query);
    }
    if (__builtin_add_overflow(row.position, 1, &row.length)) {
      fail("seq_lens", "is int64, and cannot hold ", row.position, " + 1 for sequence ", query,
           "; pass shorter sequences");
    }
    const int64_t block = table_.block(query, row.position / a_.block_size, kAnyBlocks,
                                       [&](int64_t wrong) { fail_block(wrong, query); });
    if (__builtin_mul_overflow(block, a_.block_size, &row.slot) ||
        __builtin_add_overflow(row.slot, row.position % a_.block_size, &row.slot)) {
      fail_block(block, query);
    }
    return row;
  }

  [[noreturn]] static void fail_block(int64_t block, int64_t query) {
    fail("block_tables", "has the block ", block, " for sequence ", query,
         ", whose slots are negative or do not fit into 64 bits");
  }
  template <typename... Parts>
  [[noreturn]] static void fail(const char* argument, const Parts&... parts) {
    custom_pypto::fail(npu_advance_step_flashattn::name, argument, parts...);
  }

 private:
  // The position after which a row of the table is full; the largest number if that overflows.
  int64_t last_position() const {
    const int64_t tokens = custom_pypto::tokens_of(blocks_, a_.block_size);
    return tokens == INT64_MAX ? tokens : tokens - 1;
  }

  const npu_advance_step_flashattn::Arguments& a_;
  int64_t blocks_;
  Integers sampled_;
  Integers lengths_;
  BlockTable table_;
};

void advance_step_cpu(const npu_advance_step_flashattn::Arguments& a,
                      const npu_advance_step_flashattn::CallShape& s,
                      const npu_advance_step_flashattn::Outputs&) {
  struct Column {
    const char* name;
    Writer writer;
    int64_t Row::* value;
    // The value of padding rows; null leaves them as they are.
    std::optional<int64_t> padding;
  };
  const Column columns[] = {
      {"input_tokens", Writer(a.input_tokens), &Row::token, 0},
      {"input_positions", Writer(a.input_positions), &Row::position, 0},
      {"seq_lens", Writer(a.seq_lens), &Row::length, std::nullopt},
      {"slot_mapping", Writer(a.slot_mapping), &Row::slot, -1},
  };
  // Everything is read and checked before anything is written.
  const Step step(a, s.M);
  std::vector<Row> rows(static_cast<std::size_t>(a.num_queries));
  for (int64_t query = 0; query < a.num_queries; ++query) {
    const Row row = rows[static_cast<std::size_t>(query)] = step.row(query);
    for (const Column& column : columns) {
      if (!column.writer.holds(row.*column.value)) {
        Step::fail(column.name, "is int32, and cannot hold ", row.*column.value, " for sequence ",
                   query);
      }
    }
  }
  for (const Column& column : columns) {
    for (int64_t query = 0; query < a.num_queries; ++query) {
      column.writer.write(query, rows[static_cast<std::size_t>(query)].*column.value);
    }
    for (int64_t row = a.num_queries; column.padding.has_value() && row < a.num_seqs; ++row) {
      column.writer.write(row, *column.padding);
    }
  }
}

// The kernel of npu/ is there if the plugin was built with CANN, or an opp package has it.
const custom_pypto::npu::KernelChoice kernels(npu_advance_step_flashattn::name,
                                              {"adv_step_flash", "aclnnAdvanceStep"});

// The number of cores that share the rows. One, unless no line of 64 bytes is written by two.
uint32_t cores(const npu_advance_step_flashattn::Arguments& a) {
  constexpr int64_t kRowsOfCore = 64;
  constexpr int64_t kMostCores = 20;
  for (const Tensor& written : {a.input_tokens, a.input_positions, a.seq_lens, a.slot_mapping}) {
    if (reinterpret_cast<std::uintptr_t>(written.data_ptr()) % 64 != 0) return 1;
  }
  return static_cast<uint32_t>(std::min((a.num_seqs + kRowsOfCore - 1) / kRowsOfCore, kMostCores));
}

void advance_step_npu(const npu_advance_step_flashattn::Arguments& a,
                      const npu_advance_step_flashattn::CallShape& s,
                      const npu_advance_step_flashattn::Outputs& out) {
  if (a.num_seqs == 0) return;
  const custom_pypto::npu::Kernel& kernel = kernels.get();
  if (!kernel.is("adv_step_flash") || !npu_advance_step_flashattn::adv_step_flash_supports(a, s)) {
    npu_advance_step_flashattn::launch(a, s, out);
    return;
  }
  int64_t wide = 0;
  int bit = 0;
  for (const Tensor& each : {a.input_tokens, a.sampled_token_ids, a.input_positions, a.seq_lens,
                             a.slot_mapping, a.block_tables}) {
    const bool is_wide = each.scalar_type() == torch::headeronly::ScalarType::Long;
    wide |= int64_t{is_wide} << bit++;
  }
  custom_pypto::npu::launch_direct(
      npu_advance_step_flashattn::name, kernel.launcher<decltype(adv_step_flash)>(), cores(a),
      a.input_tokens, a.sampled_token_ids, a.input_positions, a.seq_lens, a.slot_mapping,
      custom_pypto::npu::Strided{a.block_tables}, a.num_seqs, a.num_queries, a.block_size, s.M,
      a.block_tables.stride(0), wide);
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) {
  plugin.def<npu_advance_step_flashattn>().impl<&advance_step_cpu>("CPU").impl<&advance_step_npu>(
      "PrivateUse1");
}

}  // namespace custom_pypto_advance_step
