#include "topology/gpu_links.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace polyring {
namespace {

// What the wire carries, as everywhere in this project. What NCCL counts on of it is in
// simulation/vendors/nccl.cpp.
constexpr std::array kNvlinks{
    NvlinkGeneration{60, 1, gigabytes_per_second(20),
                     "NVIDIA Tesla P100 whitepaper: NVLink 1, 20 GB/s per direction and link"},
    NvlinkGeneration{70, 2, gigabytes_per_second(25),
                     "NVIDIA Tesla V100 whitepaper: NVLink 2, 25 GB/s per direction and link"},
    NvlinkGeneration{75, 2, gigabytes_per_second(25),
                     "NVIDIA Turing whitepaper: NVLink 2, 25 GB/s per direction and link"},
    NvlinkGeneration{80, 3, gigabytes_per_second(25),
                     "NVIDIA A100 whitepaper: NVLink 3, 25 GB/s per direction and link"},
    // The bridge of two A40 or RTX A6000: 4 links, 112.5 GB/s both ways.
    NvlinkGeneration{86, 3, gigabytes_per_second(14.0625),
                     "NVIDIA Ampere GA102 whitepaper: NVLink 3, 14.0625 GB/s per direction and link"},
    NvlinkGeneration{90, 4, gigabytes_per_second(25),
                     "NVIDIA H100 whitepaper: NVLink 4, 25 GB/s per direction and link"},
    NvlinkGeneration{100, 5, gigabytes_per_second(50),
                     "NVIDIA Blackwell technical brief: NVLink 5, 50 GB/s per direction and link"},
    // 1.8 TB/s both ways over 18 links, as B200.
    NvlinkGeneration{103, 5, gigabytes_per_second(50),
                     "NVIDIA Blackwell Ultra data sheet: NVLink 5, 50 GB/s per direction and link"},
};

struct Architecture {
  std::string_view name;
  std::string_view number;  // as files of before ROCm 5.3 write it
  double gigabytes;
  std::string_view source;
};

// A link is 16 bits wide: transfers a second times 2 bytes. Data sheets count both directions.
constexpr std::array kXgmi{
    // At its announcement AMD rounded the two links of the MI60 up to 200 GB/s.
    Architecture{"gfx906", "906", 46, "AMD Radeon Instinct MI50 data sheet: 2 links, 184 GB/s both ways"},
    Architecture{"gfx908", "908", 46,
                 "AMD Instinct MI100 microarchitecture (ROCm documentation): 23 GT/s, 46 GB/s per direction"},
    Architecture{"gfx90a", "910", 50,
                 "AMD Instinct MI250 microarchitecture (ROCm documentation): 25 GT/s, 50 GB/s per direction"},
    Architecture{"gfx942", "942", 64,
                 "AMD Instinct MI300X data sheet: 7 links, 896 GB/s both ways; AMD, Understanding RCCL "
                 "Bandwidth and xGMI Performance on MI300X: 64 GB/s per direction, some 48 for the user"},
    Architecture{"gfx950", "950", 76.8,
                 "AMD Instinct MI350X data sheet: 7 links of 153.6 GB/s both ways, 1075 GB/s in all"},
};

struct Product {
  std::string_view name;
  int compute_capability;
};

constexpr std::array kProducts{
    Product{"P100", 60},   Product{"V100", 70},  Product{"V100S", 70},  Product{"A100", 80},
    Product{"A800", 80},   Product{"A30", 80},   Product{"A40", 86},    Product{"A6000", 86},
    Product{"A5000", 86},  Product{"H100", 90},  Product{"H200", 90},   Product{"H800", 90},
    Product{"H20", 90},    Product{"GH200", 90}, Product{"B100", 100},  Product{"B200", 100},
    Product{"GB200", 100}, Product{"B300", 103}, Product{"GB300", 103},
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::span<const NvlinkGeneration> nvlink_generations() { return kNvlinks; }

GpuLinkRate nvlink_rate(int compute_capability) {
  for (const NvlinkGeneration& generation : kNvlinks) {
    if (generation.compute_capability == compute_capability) return {generation.bandwidth, generation.source};
  }
  return {};
}

GpuLinkRate xgmi_rate(std::string_view architecture) {
  architecture = architecture.substr(0, architecture.find(':'));
  for (const Architecture& known : kXgmi) {
    if (architecture == known.name || architecture == known.number) {
      return {gigabytes_per_second(known.gigabytes), known.source};
    }
  }
  return {};
}

std::string lost_nvlinks(const std::vector<int>& nvlinks_of_gpus) {
  std::map<int, std::vector<std::string>> gpus;  // by their number of NVLinks
  for (std::size_t gpu = 0; gpu < nvlinks_of_gpus.size(); ++gpu)
    gpus[nvlinks_of_gpus[gpu]].push_back(fmt::format("gpu{}", gpu));
  const auto most = std::ranges::max_element(gpus, {}, [](const auto& entry) { return entry.second.size(); });
  std::vector<std::string> fewer;
  for (auto entry = gpus.begin(); entry != most; ++entry)
    fewer.push_back(fmt::format("{} with {}", fmt::join(entry->second, ", "), entry->first));
  if (fewer.empty()) return {};
  return fmt::format("{} of {} GPUs have {} NVLinks, but {}: see nvidia-smi nvlink --status",
                     most->second.size(), nvlinks_of_gpus.size(), most->first, fmt::join(fewer, ", "));
}

bool misses_gpu_links(const Machine& machine) {
  const auto joins_gpus = [](const Link& link) {
    return link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi;
  };
  if (machine.gpus.size() < 2 || std::ranges::any_of(machine.links, joins_gpus)) return false;
  // As NVIDIA, AMD and the list of PCI IDs write them. Cards for PCIe slots may have no bridge.
  constexpr std::array kAlwaysLinked{"SXM",   "HBM3",  "GH200", "GB200", "GB300", "B200",
                                     "MI250", "MI300", "MI325", "MI350", "MI355"};
  return std::ranges::any_of(machine.gpus, [&](const Gpu& gpu) {
    return std::ranges::any_of(kAlwaysLinked,
                               [&](const char* name) { return gpu.model.find(name) != std::string::npos; });
  });
}

int compute_capability_of(std::string_view product) {
  std::size_t at = 0;
  while (at < product.size()) {
    std::size_t end = at;
    while (end < product.size() && is_word(product[end])) ++end;
    for (const Product& known : kProducts) {
      if (product.substr(at, end - at) == known.name) return known.compute_capability;
    }
    at = end + 1;
  }
  return 0;
}

}  // namespace polyring
