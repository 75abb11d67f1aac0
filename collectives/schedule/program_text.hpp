// Programs as text, for people and for tests: an operation a line.
#pragma once

#include <string>

#include "collectives/schedule/program.hpp"

namespace polyring {

/// Of ring over two ranks, rank 0:
///
///     step 0
///       send [1, 2) of the input to rank 1
///       receive [0, 1) from rank 1, to combine
///       combine [0, 1): own of the input, rank 1's; into the output, complete
///     …
std::string to_text(const Program& program);

std::string_view to_text(Area area);

}  // namespace polyring
