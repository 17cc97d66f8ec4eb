// Huge pages for large new allocations.
//
// The first write to a page is a page fault, which takes longer than most ops need for 4 KiB. Where
// Linux gives huge pages on request ("madvise", the default of many distributions), whole huge
// pages have one fault instead of 512: half of all faults are left at 4 MiB, nearly none at 100
// MiB. A block becomes up to three mappings of the process.
#pragma once

#include <custom_pypto/abi.h>

#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

CUSTOM_PYPTO_NAMESPACE_BEGIN
namespace detail {

// The smallest block that contains a whole huge page at any address.
inline constexpr std::size_t kWorthHugePages = std::size_t{4} << 20;

// Advises the system to use huge pages for the part of a block that whole ones cover. Contents do
// not change, and a system without huge pages ignores it.
inline void prefer_huge_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t last = (address + bytes) / kHugePage * kHugePage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace detail
CUSTOM_PYPTO_NAMESPACE_END
