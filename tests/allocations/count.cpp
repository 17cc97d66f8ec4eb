// Preloaded: counts the allocations of one library, by their return addresses, and lets one fail.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace {

std::uintptr_t library_begin = 0;
std::uintptr_t library_end = 0;
std::atomic<long> allocations{0};
std::atomic<long> failing{0};

// Counts an allocation; returns whether it must fail.
bool fails(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  if (address < library_begin || address >= library_end) return false;
  return ++allocations == failing;
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

int find_library(dl_phdr_info* info, std::size_t, void* name) {
  if (std::strstr(info->dlpi_name, static_cast<const char*>(name)) == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    library_begin = info->dlpi_addr + segment.p_vaddr;
    library_end = library_begin + segment.p_memsz;
  }
  return 1;
}

}  // namespace

// glibc's functions, under names that nothing else defines.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

// Whether a library whose path contains `name` is loaded; allocations of it are counted from now.
int count_allocations_of(char* name) {
  allocations = failing = 0;
  library_begin = library_end = 0;
  return dl_iterate_phdr(&find_library, name);
}

long counted_allocations() { return allocations; }

// The allocation with this number, counted from now, fails.
void fail_allocation(long number) {
  allocations = 0;
  failing = number;
}

void* malloc(std::size_t size) {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_calloc(number, size);
}
void* realloc(void* memory, std::size_t size) {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = fails(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
  return *memory == nullptr ? 12 : 0;  // ENOMEM
}
}

void* operator new(std::size_t size) {
  return or_throw(fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(size));
}
void* operator new[](std::size_t size) {
  return or_throw(fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(size));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return or_throw(fails(__builtin_return_address(0))
                      ? nullptr
                      : __libc_memalign(static_cast<std::size_t>(alignment), size));
}
