// The machine that hosts are to be like: `--like`.
#pragma once

#include <string>

#include "topology/machine.hpp"

namespace polyring {

/// That of the preset of this name, else the first host of the file, which `probe --from` reads. Throws a
/// usage Error where there is neither.
Machine machine_like(const std::string& name);

}  // namespace polyring
