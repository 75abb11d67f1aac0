#include "collectives/runtime/net/rdma.hpp"

#include <system_error>

namespace polyring {

bool has_rdma_device(const std::filesystem::path& sysfs) {
  std::error_code none;
  const std::filesystem::directory_iterator devices(sysfs / "class/infiniband", none);
  return !none && devices != std::filesystem::directory_iterator();
}

}  // namespace polyring
