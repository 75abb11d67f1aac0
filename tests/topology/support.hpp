// What the topology tests share: expecting errors, small machines, temporary files, golden files.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "tests/folder.hpp"
#include "topology/machine.hpp"

namespace polyring::testing {

/// The sentence of the usage Error that `action` throws; a failure when it throws none.
template <typename Action>
std::string usage_sentence(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

/// A folder of its own that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "polyring-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// Writes a file and the folders above it; returns its path.
  std::filesystem::path write(const std::filesystem::path& name, std::string_view text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Compares with a file of tests/golden; POLYRING_UPDATE_GOLDEN=1 writes it instead.
inline void expect_golden(const std::filesystem::path& name, const std::string& text) {
  const std::filesystem::path file = tests_folder() / "golden" / name;
  if (std::getenv("POLYRING_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  EXPECT_EQ(read_all(file), text) << "differs from " << file << "; POLYRING_UPDATE_GOLDEN=1 rewrites it";
}

/// Two packages of one GPU each, all on PCIe, and a NIC at the first.
inline Machine small_machine() {
  Machine machine;
  machine.name = "small";
  machine.packages = {
      {.name = "package0", .model = {}, .cores = 4, .memory = {}, .memory_bandwidth = {}, .numa_nodes = {0}},
      {.name = "package1", .model = {}, .cores = 4, .memory = {}, .memory_bandwidth = {}, .numa_nodes = {1}}};
  for (int i = 0; i < 2; ++i) {
    machine.gpus.push_back({fmt::format("gpu{}", i), "GPU", "", i, i, {}, {}});
    machine.links.push_back({{DeviceKind::gpu, i},
                             {DeviceKind::package, i},
                             LinkKind::pcie,
                             gigabytes_per_second(16),
                             microseconds(1)});
  }
  machine.nics = {{"mlx5_0", "NIC", "", 0, 0, NicKind::infiniband, {{1, true, gigabytes_per_second(12)}}}};
  machine.links.push_back({{DeviceKind::nic, 0},
                           {DeviceKind::package, 0},
                           LinkKind::pcie,
                           gigabytes_per_second(8),
                           microseconds(1)});
  machine.links.push_back({{DeviceKind::package, 0},
                           {DeviceKind::package, 1},
                           LinkKind::socket_bus,
                           gigabytes_per_second(20),
                           microseconds(2)});
  return machine;
}

/// The small machine with the NIC's device a ConnectX of two ports, each of 12 GB/s, which are functions of
/// it and share its link of 16 GB/s.
inline Machine two_port_machine() {
  Machine machine = small_machine();
  machine.links[2].bandwidth = gigabytes_per_second(16);
  machine.nics[0].pci = "0000:4d:00.0";
  machine.nics.push_back(machine.nics[0]);
  machine.nics[1].name = "mlx5_1";
  machine.nics[1].pci = "0000:4d:00.1";
  machine.links.insert(machine.links.begin() + 3, machine.links[2]);
  machine.links[3].from.index = 1;
  return machine;
}

/// "gpu0-switch0 pcie 15.8 GB/s" for each link, in the machine's order.
inline std::vector<std::string> links_of(const Machine& machine) {
  std::vector<std::string> links;
  for (const Link& link : machine.links) {
    links.push_back(fmt::format("{}-{} {} {}", machine.device_name(link.from), machine.device_name(link.to),
                                to_text(link.kind), to_text(link.bandwidth)));
  }
  return links;
}

/// The folder of real machines' files, empty when the tests have none.
inline std::filesystem::path topologies() {
  const char* folder = std::getenv("POLYRING_TOPOLOGIES");
  return folder == nullptr ? "" : folder;
}

}  // namespace polyring::testing

#define POLYRING_NEEDS_TOPOLOGIES()            \
  if (polyring::testing::topologies().empty()) \
  GTEST_SKIP() << "POLYRING_TOPOLOGIES names no folder of real machines"
