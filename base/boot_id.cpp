#include "base/boot_id.hpp"

#include <fstream>

namespace polyring {

std::string boot_id(const std::string& otherwise) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return std::getline(file, id) ? id : otherwise;
}

}  // namespace polyring
