// A process that has as many mappings of memory as the system allows.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <fstream>

#include "collectives/runtime/shared/segment.hpp"

namespace polyring::testing {

/// As many as a test can take; 0 where the system allows more, or does not say.
inline std::size_t most_mappings() {
  std::ifstream file("/proc/sys/vm/max_map_count");
  std::size_t most = 0;
  constexpr std::size_t kMost = 1 << 20;
  return file >> most && most <= kMost ? most : 0;
}

/// Takes all that are left.
class AllMappings {
 public:
  explicit AllMappings(std::size_t most) : bytes_(2 * most * kPage) {
    reserved_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    // Neighbours that differ in what may be done with them are mappings of their own.
    auto* const pages = static_cast<std::byte*>(reserved_);
    std::size_t page = 0;
    while (mprotect(pages + page * kPage, kPage, PROT_READ) == 0) page += 2;
    while (mmap(nullptr, kPage, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
    }
  }
  ~AllMappings() { munmap(reserved_, bytes_); }
  AllMappings(const AllMappings&) = delete;
  AllMappings& operator=(const AllMappings&) = delete;

 private:
  std::size_t bytes_;
  void* reserved_;
};

}  // namespace polyring::testing
