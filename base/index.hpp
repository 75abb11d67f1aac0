// Numbers of ranks, hosts and elements are signed; this makes indices of them.
#pragma once

#include <concepts>
#include <cstddef>

namespace polyring {

/// `number` must not be negative.
constexpr std::size_t index(std::signed_integral auto number) { return static_cast<std::size_t>(number); }

}  // namespace polyring
