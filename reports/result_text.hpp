// A result file's text, when it is in memory already.
#pragma once

#include <string>

#include "reports/result.hpp"

namespace polyring {

/// As read_result(), of text. `file` names it in errors.
ResultFile parse_result(const std::string& text, const std::string& file);

}  // namespace polyring
