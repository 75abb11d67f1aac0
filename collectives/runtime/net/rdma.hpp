// Whether this host has hardware for RDMA.
#pragma once

#include <filesystem>

namespace polyring {

/// Whether sysfs lists a device of RDMA (InfiniBand, RoCE, EFA, …). Asks no driver.
bool has_rdma_device(const std::filesystem::path& sysfs = "/sys");

}  // namespace polyring
