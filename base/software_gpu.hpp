// The software GPU of the tests (tests/software_gpu), by its name.
#pragma once

#include <string_view>

namespace polyring {

/// Whether a GPU of this name is that one: what it computes counts, and times on it say nothing.
constexpr bool is_software_gpu(std::string_view name) { return name.starts_with("software GPU"); }

}  // namespace polyring
