#include <stdexcept>

#include "tests/simulation/oracle/simgrid.hpp"

namespace polyring::testing {

bool has_simgrid() { return false; }

Seconds time_by_simgrid(const Schedule&, const Router&, int, int) {
  throw std::runtime_error("SimGrid is not here");
}

}  // namespace polyring::testing
