// A schedule has more transfers than can be priced or simulated: a usage Error, which a planner can tell from
// others, since another plan may have fewer.
#pragma once

#include <string>

#include "base/error.hpp"

namespace polyring {

class TooManyTransfers final : public Error {
 public:
  explicit TooManyTransfers(const std::string& sentence) : Error(ExitCode::usage, sentence) {}
};

}  // namespace polyring
