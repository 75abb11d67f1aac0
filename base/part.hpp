// A part of a whole, as people write it.
#pragma once

#include <optional>
#include <string_view>

namespace polyring {

/// Reads `5%` or `0.05`, from 0 to 1. Nothing for anything else.
std::optional<double> read_part(std::string_view text);

}  // namespace polyring
