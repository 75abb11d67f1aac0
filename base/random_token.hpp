// Numbers that nobody guesses or draws twice.
#pragma once

#include <cstdint>

namespace polyring {

/// 64 random bits of the system's, others at each call.
std::uint64_t random_token();

}  // namespace polyring
