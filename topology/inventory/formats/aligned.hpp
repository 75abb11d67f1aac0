// Text tables without lines, for a terminal.
#pragma once

#include <string>
#include <vector>

namespace polyring {

/// Rows of as many cells each, columns to the left, two blanks between them and none at the end of a line.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace polyring
