#include <stdexcept>

#include "tests/simulation/oracle/simgrid.hpp"

namespace polyring::testing {

std::string no_simgrid() { return POLYRING_NO_SIMGRID; }

Seconds time_by_simgrid(const Schedule&, const Router&, int, int) {
  throw std::runtime_error("no SimGrid: " POLYRING_NO_SIMGRID);
}

}  // namespace polyring::testing
