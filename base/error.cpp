#include "base/error.hpp"

#include "base/printable.hpp"

namespace polyring {

Error::Error(ExitCode code, const std::string& sentence)
    : std::runtime_error(printable_line(sentence)), code_(code) {}

}  // namespace polyring
