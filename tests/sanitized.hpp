// Whether AddressSanitizer or ThreadSanitizer is at work, of g++ or of clang.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define POLYRING_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define POLYRING_SANITIZED 1
#endif
#endif

namespace polyring {

#ifdef POLYRING_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace polyring
