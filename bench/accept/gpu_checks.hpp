// The names of checks that a later version will have.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace polyring {

/// How fast each GPU computes.
inline constexpr std::array<std::string_view, 1> kLaterChecks{"gpu.compute"};

/// What to say of one of these; empty for all other names.
std::string why_not_yet(std::string_view name);

}  // namespace polyring
