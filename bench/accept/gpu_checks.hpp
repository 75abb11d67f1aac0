// The names of checks that a later version will have.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace polyring {

/// How fast each GPU computes, how fast its memory is, and its clocks, temperature, ECC errors and Xid
/// events.
inline constexpr std::array<std::string_view, 3> kGpuChecks{"gpu.compute", "gpu.memory", "gpu.health"};

/// What to say of one of these; empty for all other names.
std::string why_not_yet(std::string_view name);

}  // namespace polyring
