#include "topology/gpu_links.hpp"

#include <array>
#include <cctype>
#include <string>

namespace polyring {
namespace {

struct Generation {
  int compute_capability;
  double gigabytes;  // per second and direction
  std::string_view source;
};

// What the wire carries, as everywhere in this project. NCCL's own table (src/graph/topo.h) has what reaches
// the user: 18 of 20, 20 of 25, 40 of 50 GB/s.
constexpr std::array kNvlinks{
    Generation{60, 20, "NVIDIA Tesla P100 whitepaper: NVLink 1, 20 GB/s per direction and link"},
    Generation{70, 25, "NVIDIA Tesla V100 whitepaper: NVLink 2, 25 GB/s per direction and link"},
    Generation{75, 25, "NVIDIA Turing whitepaper: NVLink 2, 25 GB/s per direction and link"},
    Generation{80, 25, "NVIDIA A100 whitepaper: NVLink 3, 25 GB/s per direction and link"},
    Generation{86, 14.0625, "NVIDIA Ampere GA102 whitepaper: NVLink 3, 14.0625 GB/s per direction and link"},
    Generation{90, 25, "NVIDIA H100 whitepaper: NVLink 4, 25 GB/s per direction and link"},
    Generation{100, 50, "NVIDIA Blackwell technical brief: NVLink 5, 50 GB/s per direction and link"},
    Generation{103, 50, "NVIDIA Blackwell Ultra data sheet: NVLink 5, 50 GB/s per direction and link"},
};

struct Architecture {
  std::string_view name;
  std::string_view number;  // as files of before ROCm 5.3 write it
  double gigabytes;
  std::string_view source;
};

// The data sheets count both directions.
constexpr std::array kXgmi{
    Architecture{"gfx906", "906", 46, "AMD Radeon Instinct MI50 data sheet: 2 links, 184 GB/s both ways"},
    Architecture{"gfx908", "908", 46, "AMD Instinct MI100 data sheet: 3 links, 276 GB/s both ways"},
    Architecture{"gfx90a", "910", 50, "AMD Instinct MI250X data sheet: 8 links, 800 GB/s both ways"},
    Architecture{"gfx942", "942", 64, "AMD Instinct MI300X data sheet: 7 links, 896 GB/s both ways"},
    Architecture{"gfx950", "950", 76.8, "AMD Instinct MI350X data sheet: 7 links, 1075 GB/s both ways"},
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

GpuLinkRate nvlink_rate(int compute_capability) {
  for (const Generation& generation : kNvlinks) {
    if (generation.compute_capability == compute_capability) {
      return {gigabytes_per_second(generation.gigabytes), generation.source};
    }
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
