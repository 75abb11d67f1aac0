// Ranks, hosts and elements are counted with signed numbers; containers want unsigned indices.
#pragma once

#include <concepts>
#include <cstddef>

namespace polyring {

/// `number` must not be negative.
constexpr std::size_t index(std::signed_integral auto number) { return static_cast<std::size_t>(number); }

}  // namespace polyring
