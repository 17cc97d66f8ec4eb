// A write into a paged cache, as serving engines call it.
#include <custom_pypto/plugin.h>
#include <custom_pypto_blocks/element.h>
#include <custom_pypto_blocks/paged_cache.h>

#include <cstring>

#include "ops.h"

using Op = ops::headers_paged_write;

namespace {

void write(const Op::Arguments& a, const Op::CallShape& s, const Op::Outputs&) {
  using custom_pypto::CacheUse;
  using custom_pypto::PaddingSlots;
  const custom_pypto::PagedCache cache =
      a.heads ? custom_pypto::heads_of(Op::name, "cache", a.cache, CacheUse::written)
              : custom_pypto::cache_of(Op::name, "cache", a.cache, CacheUse::written);
  const auto slots = custom_pypto::read_slots(Op::name, "slots", a.slots, cache,
                                              a.heads ? PaddingSlots::kept : PaddingSlots::refused);
  const auto* row = static_cast<const char*>(a.rows.const_data_ptr());
  const auto element = custom_pypto::Element(custom_pypto::float_index(a.rows.scalar_type()));
  const auto bytes = static_cast<std::size_t>(s.D * custom_pypto::bytes_of(element));
  for (const int64_t slot : slots) {
    for (int64_t head = 0; head < s.N; ++head, row += bytes) {
      if (slot < 0) continue;
      char* to = a.heads ? cache.head(slot, head)
                         : cache.row(slot) + static_cast<std::size_t>(head) * bytes;
      std::memcpy(to, row, bytes);
    }
  }
}

}  // namespace

CUSTOM_PYPTO_PLUGIN(plugin) { plugin.def<Op>().impl<&write>("CPU"); }
