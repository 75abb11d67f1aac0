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
  std::string_view name;  // whole words of the product's name, one after the other
  int compute_capability;
  int nvlinks;  // of one GPU
  std::string_view source;
};

constexpr std::string_view kP100 = "NVIDIA Tesla P100 whitepaper: 4 links of 20 GB/s, 160 GB/s both ways";
constexpr std::string_view kV100 = "NVIDIA Tesla V100 whitepaper: 6 links of 25 GB/s, 300 GB/s both ways";
constexpr std::string_view kTu102 =
    "NVIDIA Turing whitepaper: TU102 has 2 links of 25 GB/s, 100 GB/s both ways";
constexpr std::string_view kTu104 =
    "NVIDIA Turing whitepaper: TU104 has 1 link of 25 GB/s, 50 GB/s both ways";
constexpr std::string_view kA100 = "NVIDIA A100 whitepaper: 12 links of 25 GB/s, 600 GB/s both ways";
constexpr std::string_view kGa102 =
    "NVIDIA Ampere GA102 whitepaper: 4 links of 14.0625 GB/s, 112.5 GB/s both ways";
constexpr std::string_view kH100 = "NVIDIA H100 whitepaper: 18 links of 25 GB/s, 900 GB/s both ways";
constexpr std::string_view kBlackwell =
    "NVIDIA Blackwell technical brief: 18 links of 50 GB/s, 1.8 TB/s both ways";
constexpr std::string_view kUltra =
    "NVIDIA Blackwell Ultra data sheet: 18 links of 50 GB/s, 1.8 TB/s both ways";

// Cards that bridges join have as many as all of their bridges take. Without "Quadro" an RTX 5000 or 6000 is
// Ada's or Blackwell's, which have no NVLink; of a laptop's no source has a link.
constexpr std::array kProducts{
    Product{"P100", 60, 4, kP100},
    Product{"Quadro GP100", 60, 4, kP100},
    Product{"V100", 70, 6, kV100},
    Product{"V100S", 70, 6, kV100},
    Product{"Quadro GV100", 70, 4, "NVIDIA Quadro GV100 data sheet: 200 GB/s both ways over two bridges"},
    Product{"TITAN RTX", 75, 2, kTu102},
    Product{"Quadro RTX 8000", 75, 2, kTu102},
    Product{"Quadro RTX 6000", 75, 2, kTu102},
    Product{"Quadro RTX 5000", 75, 1, kTu104},
    Product{"RTX 2080 Ti", 75, 2, kTu102},
    Product{"RTX 2080", 75, 1, kTu104},  // the SUPER, too
    Product{"A100", 80, 12, kA100},
    Product{"A800", 80, 8, "NVIDIA A800 data sheet: 400 GB/s both ways"},
    Product{"A30", 80, 4, "NVIDIA A30 data sheet: 200 GB/s both ways over its bridge"},
    Product{"A40", 86, 4, kGa102},
    Product{"RTX 3090", 86, 4, kGa102},
    Product{"A6000", 86, 4, kGa102},
    Product{"A5500", 86, 4, "NVIDIA RTX A5500 data sheet: 112.5 GB/s both ways"},
    Product{"A5000", 86, 4, "NVIDIA RTX A5000 data sheet: 112.5 GB/s both ways"},
    Product{"A4500", 86, 4, "NVIDIA RTX A4500 data sheet: 112.5 GB/s both ways"},
    Product{"H100", 90, 18, kH100},
    Product{"H200", 90, 18, "NVIDIA H200 data sheet: 900 GB/s both ways"},
    Product{"H800", 90, 8, "NVIDIA H800 data sheet: 400 GB/s both ways"},
    Product{"H20", 90, 18, "NVIDIA H20 data sheet: 900 GB/s both ways"},
    Product{"GH200", 90, 18, "NVIDIA GH200 data sheet: 900 GB/s both ways"},
    Product{"B100", 100, 18, kBlackwell},
    Product{"B200", 100, 18, kBlackwell},
    Product{"GB200", 100, 18, kBlackwell},
    Product{"B300", 103, 18, kUltra},
    Product{"GB300", 103, 18, kUltra},
};

std::vector<std::string_view> words_of(std::string_view text) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t begin = at;
    while (at < text.size() && is_word(text[at])) ++at;
    if (at > begin) words.push_back(text.substr(begin, at - begin));
  }
  return words;
}

const Product* product_named(std::string_view name) {
  const auto words = words_of(name);
  const auto found = std::ranges::find_if(kProducts, [&](const Product& known) {
    const auto own = words_of(known.name);
    return std::search(words.begin(), words.end(), own.begin(), own.end()) != words.end();
  });
  return found == kProducts.end() ? nullptr : &*found;
}

/// By the product's name, or by its number where that is in the name's place. Cards for PCIe slots may have
/// no bridge.
bool is_always_linked(std::string_view model) {
  // As NVIDIA, AMD and the list of PCI IDs write them; the numbers are that list's.
  constexpr std::array kParts{
      "SXM", "HBM3", "GH200", "GB200", "GB300", "B200", "MI250", "MI300", "MI308", "MI325", "MI350", "MI355",
      "10de:15f9",                                         // P100 SXM2
      "10de:1db1", "10de:1db5", "10de:1db8",               // V100 SXM2, SXM3
      "10de:20b0", "10de:20b2",                            // A100 SXM4
      "10de:2324", "10de:2329", "10de:2330", "10de:2335",  // H800, H20, H100, H200 SXM
      "10de:2901", "10de:2941", "10de:31c2",               // B200, GB200, GB300
      "1002:7408", "1002:740c",                            // MI250X, MI250
      // MI300A, MI300X, MI308X, MI325X; MI350X, MI355X; and the virtual functions of each
      "1002:74a", "1002:74b", "1002:75a", "1002:75b"};
  if (std::ranges::any_of(kParts,
                          [&](const char* part) { return model.find(part) != std::string_view::npos; }))
    return true;
  const auto words = words_of(model);
  const auto has = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
  // Of AMD's MI200 those for OCP's modules, which its driver names without their numbers.
  if (has("MI200") && has("OAM")) return true;
  // NVIDIA names the modules by the chip alone, and cards with more words: "H200 NVL", "H800 PCIe".
  constexpr std::array<std::string_view, 3> kModules{"H200", "H20", "H800"};
  const std::size_t last = words.size() > 1 && words.back() == "3e" ? words.size() - 2 : words.size() - 1;
  return !words.empty() && std::ranges::find(kModules, words[last]) != kModules.end();
}

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
  return std::ranges::any_of(machine.gpus, [](const Gpu& gpu) { return is_always_linked(gpu.model); });
}

int compute_capability_of(std::string_view product) {
  const Product* known = product_named(product);
  return known == nullptr ? 0 : known->compute_capability;
}

int most_nvlinks_of(std::string_view product) {
  const Product* known = product_named(product);
  return known == nullptr ? 0 : known->nvlinks;
}

}  // namespace polyring
