// Every file of real machines, of whatever format, against a golden file of its own: devices, links, ports
// and paths. What is in the table below was counted in the files by hand.
#include <algorithm>
#include <cctype>

#include "tests/folder.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/nccl_xml.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/read_cluster.hpp"
#include "topology/inventory/formats/write_nccl_xml.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

fs::path golden_folder() { return tests_folder() / "golden/probe_files"; }

/// Below the folder of topologies: "nccl/azure-ndv4-topo.xml".
std::vector<std::string> files_with_golden_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(golden_folder())) {
    if (!entry.is_regular_file()) continue;
    files.push_back(entry.path().lexically_relative(golden_folder()).replace_extension().string());
  }
  std::ranges::sort(files);
  return files;
}

std::string ports_of(const Nic& nic) {
  if (nic.ports.empty()) return " ports ?";
  std::string text;
  for (const Port& port : nic.ports) {
    text += fmt::format(", port {} {} {}", port.number, port.up ? "up" : "down", to_text(port.bandwidth));
  }
  return text;
}

/// The kinds of paths between GPUs and NICs.
std::string paths_of(const Machine& machine) {
  std::vector<DeviceId> devices;
  for (int i = 0; i < static_cast<int>(machine.gpus.size()); ++i) devices.push_back({DeviceKind::gpu, i});
  for (int i = 0; i < static_cast<int>(machine.nics.size()); ++i) devices.push_back({DeviceKind::nic, i});
  std::string text;
  for (const DeviceId from : devices) {
    text += machine.device_name(from);
    for (const DeviceId to : devices) {
      const auto path = find_path(machine, from, to);
      text += fmt::format(" {}", path ? to_text(path->type) : "-");
    }
    text += "\n";
  }
  return text;
}

/// What tests compare, in a form that does not change with how the program prints.
std::string facts_of(const Machine& machine) {
  std::string text = fmt::format("{}: {}\n", machine.name, machine.model);
  for (const Package& package : machine.packages) {
    text += fmt::format("{}: {}, {} cores, NUMA", package.name, package.model, package.cores);
    for (const int node : package.numa_nodes) text += fmt::format(" {}", node);
    text += "\n";
  }
  for (const PciSwitch& found : machine.switches) text += fmt::format("{}: {}\n", found.name, found.pci);
  for (const Gpu& gpu : machine.gpus) {
    text += fmt::format("{}: {}, {}, NUMA {}\n", gpu.name, gpu.pci, gpu.model, gpu.numa);
  }
  for (const Nic& nic : machine.nics) {
    text += fmt::format("{}: {}, {}, NUMA {}, {}{}\n", nic.name, nic.pci, nic.model, nic.numa,
                        to_text(nic.kind), ports_of(nic));
  }
  for (const std::string& link : testing::links_of(machine)) text += link + "\n";
  return text + paths_of(machine);
}

class RealFiles : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { POLYRING_NEEDS_TOPOLOGIES(); }
  static Cluster cluster() { return read_cluster(testing::topologies() / GetParam()); }
};

TEST_P(RealFiles, HaveWhatTheirGoldenFileSays) {
  testing::expect_golden(fs::path("probe_files") / (GetParam() + ".txt"), facts_of(cluster().host(0)));
}

TEST_P(RealFiles, AreReadAgainFromOurJson) {
  const std::string json = probe_json(cluster());
  EXPECT_EQ(probe_json(parse_probe_json(json, "memory")), json);
}

// What NCCL's format can hold comes back from it; see write_nccl_xml.hpp for what it cannot.
TEST_P(RealFiles, KeepTheirGpusAndGpuLinksInNcclsFormat) {
  const Machine machine = cluster().host(0);
  const Machine again = parse_nccl_xml(write_nccl_xml(cluster()), "memory").host(0);
  const auto kept = [](const Machine& of) {
    std::vector<std::string> facts;
    for (const Gpu& gpu : of.gpus) facts.push_back(fmt::format("{} {}", gpu.name, gpu.numa));
    for (const Link& link : of.links) {
      if (link.kind != LinkKind::nvlink && link.kind != LinkKind::xgmi) continue;
      facts.push_back(fmt::format("{}-{} {}", of.device_name(link.from), of.device_name(link.to),
                                  to_text(link.bandwidth)));
    }
    std::ranges::sort(facts);
    return facts;
  };
  EXPECT_EQ(kept(again), kept(machine));
}

INSTANTIATE_TEST_SUITE_P(Folder, RealFiles, ::testing::ValuesIn(files_with_golden_files()),
                         [](const auto& row) {
                           std::string name = row.param;
                           std::ranges::replace_if(
                               name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; },
                               '_');
                           return name;
                         });

TEST(RealFilesFolder, HoldsNoMachineWithoutAGoldenFile) {
  POLYRING_NEEDS_TOPOLOGIES();
  const std::vector<std::string> known = files_with_golden_files();
  for (const auto& entry : fs::recursive_directory_iterator(testing::topologies())) {
    const std::string file = entry.path().lexically_relative(testing::topologies()).string();
    // Fabrics are no machines, and have tests of their own.
    if (!entry.is_regular_file() || file == "MANIFEST.md" || file.starts_with("fabric/")) continue;
    EXPECT_TRUE(std::ranges::binary_search(known, file))
        << file << " has no golden file; write tests/golden/probe_files/" << file
        << ".txt, empty, configure again, and run this test with POLYRING_UPDATE_GOLDEN=1";
  }
}

/// Counted in the file with grep; bandwidths by its numbers of links, and its PCIe speeds and lanes.
struct Counted {
  const char* file;
  std::size_t packages;  // <cpu>
  std::size_t switches;  // bridges that lead to a device
  std::size_t gpus;
  std::size_t nics;
  std::size_t nics_up;
  double nic_gigabytes;   // of the first; 0 where unknown
  std::size_t gpu_links;  // NVLink and xGMI, each pair once
  double link_gigabytes;  // of the first; 0 where unknown or none
  double pcie_gigabytes;  // of gpu0's own PCIe link
  const char* gpu0_gpu1;
  const char* gpu0_last_gpu;
  const char* gpu0_nic0;
};

void PrintTo(const Counted& row, std::ostream* out) { *out << row.file; }

class CountedFiles : public ::testing::TestWithParam<Counted> {};

TEST_P(CountedFiles, HaveTheirDevices) {
  POLYRING_NEEDS_TOPOLOGIES();
  const Counted& row = GetParam();
  const Machine machine = read_cluster(testing::topologies() / row.file).host(0);
  EXPECT_EQ(machine.packages.size(), row.packages);
  EXPECT_EQ(machine.switches.size(), row.switches);
  ASSERT_EQ(machine.gpus.size(), row.gpus);
  ASSERT_EQ(machine.nics.size(), row.nics);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count_if(machine.nics, &Nic::up)), row.nics_up);
  const auto type = [&](DeviceId to) { return to_text(find_path(machine, {DeviceKind::gpu, 0}, to)->type); };
  EXPECT_EQ(type({DeviceKind::gpu, 1}), row.gpu0_gpu1);
  EXPECT_EQ(type({DeviceKind::gpu, static_cast<int>(row.gpus) - 1}), row.gpu0_last_gpu);
  if (row.nics > 0) {
    EXPECT_EQ(type({DeviceKind::nic, 0}), row.gpu0_nic0);
    EXPECT_NEAR(machine.nics[0].bandwidth().gigabytes_per_second(), row.nic_gigabytes, 0.005);
  }
  std::vector<Link> gpu_links;
  for (const Link& link : machine.links) {
    if (link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi) gpu_links.push_back(link);
    if (link.kind == LinkKind::pcie && link.from == DeviceId{DeviceKind::gpu, 0}) {
      EXPECT_NEAR(link.bandwidth.gigabytes_per_second(), row.pcie_gigabytes, 0.005);
    }
  }
  ASSERT_EQ(gpu_links.size(), row.gpu_links);
  for (const Link& link : gpu_links) {
    EXPECT_DOUBLE_EQ(link.bandwidth.gigabytes_per_second(), row.link_gigabytes);
  }
}

// aws: class 0x030200 8x, 0x0200 4x, 0x0604 4x with 2 GPUs and a NIC each, "8 GT/s" x16.
// azure ndv4: 4 CPUs with a bridge of 2 GPUs and 2 NICs (0x0207) each, "16 GT/s" x16; the GPU with the lowest
// address,
//   0001:00:00.0, is under NUMA node 1, with 0002 and the NICs 0101 and 0102.
// azure ncv4: 4 CPUs with a GPU each, link_speed="", 12 NVLinks of each GPU to itself; eth0, 100 Gb/s, under
// CPU 0. 4p2h: 10 bridges; xgmi is a square in each half, 2 x 4; gcn 906; mlx5_0 has class 0x0200, so 100
// Gb/s is 12.5 GB/s. 8p6l: a bridge for each of 8 GPUs; 6 xgmi of each, 24 in all; mlx5_0 of class 0x0200 and
// 200 Gb/s. rome: 4 CPUs with 5 bridges, 2 GPUs and an InfiniBand NIC of 200 Gb/s each; 3 xgmi of each GPU,
// 12 in all. 940: 2 CPUs; 3 bridges for each GPU, the outermost with its NIC of 400 Gb/s; 7 xgmi of each, 28
// in all; gfx942;
//   "32.0 GT/s PCIe" x16.
// dgx1: 4 NV# in each row, 16 pairs; no model, so the bandwidth is unknown; GPU0 and GPU7 SYS.
INSTANTIATE_TEST_SUITE_P(
    ByHand, CountedFiles,
    ::testing::Values(
        Counted{"nccl/aws-p4d-24xl-topo.xml", 2, 4, 8, 4, 0, 0, 0, 0, 15.754, "PIX", "SYS", "PIX"},
        Counted{"nccl/azure-ndv4-topo.xml", 4, 4, 8, 8, 0, 0, 0, 0, 31.508, "PIX", "SYS", "PIX"},
        Counted{"nccl/azure-ncv4-topo.xml", 4, 0, 4, 1, 1, 12.5, 0, 0, 0, "SYS", "SYS", "PHB"},
        Counted{"rccl/topo_4p2h_2nic.xml", 1, 10, 8, 2, 2, 12.5, 8, 46, 31.508, "NVL", "PHB", "PXB"},
        Counted{"rccl/topo_8p6l.xml", 2, 8, 8, 1, 1, 25, 24, 46, 31.508, "NVL", "NVL", "SYS"},
        Counted{"rccl/topo_8p_rome_4nics.xml", 4, 20, 8, 4, 4, 24.242, 12, 46, 31.508, "NVL", "SYS", "PXB"},
        Counted{"rccl/topo_8p_940.xml", 2, 24, 8, 8, 8, 48.485, 28, 64, 63.015, "NVL", "NVL", "PXB"},
        Counted{"smi/dgx1-v100-topo-m.txt", 2, 0, 8, 0, 0, 0, 16, 0, 0, "NVL", "SYS", ""}),
    [](const auto& row) {
      std::string name = row.param.file;
      std::ranges::replace_if(
          name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
      return name;
    });

TEST(CountedFiles, OfTheDgx1HaveTheMatrixOfTheFile) {
  POLYRING_NEEDS_TOPOLOGIES();
  const Machine machine = read_cluster(testing::topologies() / "smi/dgx1-v100-topo-m.txt").host(0);
  // N for each NV1 or NV2 of the file, s for SYS.
  const char* rows[] = {"-NNNNsss", "N-NNsNss", "NN-NssNs", "NNN-sssN",
                        "Nsss-NNN", "sNssN-NN", "ssNsNN-N", "sssNNNN-"};
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 8; ++b) {
      if (a == b) continue;
      const PathType type = find_path(machine, {DeviceKind::gpu, a}, {DeviceKind::gpu, b})->type;
      EXPECT_EQ(type, rows[a][b] == 'N' ? PathType::nvl : PathType::sys) << a << ", " << b;
    }
  }
}

}  // namespace
}  // namespace polyring
