// Memory that is allocated and must not be used: reads and writes of it are errors under AddressSanitizer.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define POLYRING_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POLYRING_POISON 1
#endif
#endif

#ifdef POLYRING_POISON
#include <sanitizer/asan_interface.h>
#endif

namespace polyring {

inline void poison([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::size_t bytes) {
#ifdef POLYRING_POISON
  __asan_poison_memory_region(begin, bytes);
#endif
}

inline void unpoison([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::size_t bytes) {
#ifdef POLYRING_POISON
  __asan_unpoison_memory_region(begin, bytes);
#endif
}

}  // namespace polyring
