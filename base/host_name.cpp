#include "base/host_name.hpp"

#include <unistd.h>

#include <array>

namespace polyring {

std::string own_host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != 0 ? name.data() : "localhost";
}

}  // namespace polyring
