// How ranks introduce themselves to each other before a transport joins them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace polyring {

/// Collective over the world: each rank's bytes.
using Allgather = std::function<std::vector<std::vector<std::byte>>(std::span<const std::byte>)>;

}  // namespace polyring
