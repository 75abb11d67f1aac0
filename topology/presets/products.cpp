#include "topology/presets/products.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "topology/gpu_links.hpp"
#include "topology/port_rates.hpp"

namespace polyring::presets {
namespace {

constexpr int kOfChip = -1;  // links: as many as gpu_links.hpp knows of the chip

struct Product {
  std::string_view name;
  std::string_view model;
  std::string_view label;  // of the citation
  int gibibytes;
  double gigabytes;            // per second, of memory
  int links;                   // of one GPU, with all of its bridges; kOfChip, or 0 where it can have none
  std::string_view xgmi;       // AMD's architecture; empty: NVIDIA's
  int pcie;                    // generation; 0: NVLink-C2C
  double c2c;                  // GB/s per direction
  std::string_view source;     // of all numbers but those of gpu_links.hpp
  std::string_view aliases{};  // "h100,h100-sxm5"
};

// A card's NVLinks are those of its bridges, which somebody may have left out.
constexpr std::array kProducts{
    Product{"P100-SXM2", "Tesla P100-SXM2-16GB", "P100 SXM2", 16, 732, kOfChip, "", 3, 0,
            "NVIDIA Tesla P100 data sheet", "p100"},
    Product{"P100-PCIE-16GB", "Tesla P100-PCIE-16GB", "P100 PCIe", 16, 732, 0, "", 3, 0,
            "NVIDIA Tesla P100 PCIe data sheet", "p100-pcie"},
    Product{"P100-PCIE-12GB", "Tesla P100-PCIE-12GB", "P100 PCIe", 12, 549, 0, "", 3, 0,
            "NVIDIA Tesla P100 PCIe data sheet"},
    Product{"V100-SXM2-16GB", "Tesla V100-SXM2-16GB", "V100 SXM2", 16, 900, kOfChip, "", 3, 0,
            "NVIDIA Tesla V100 data sheet", "v100,v100-sxm2"},
    Product{"V100-SXM2-32GB", "Tesla V100-SXM2-32GB", "V100 SXM2", 32, 900, kOfChip, "", 3, 0,
            "NVIDIA V100 data sheet", "v100-32gb"},
    Product{"V100-PCIE-16GB", "Tesla V100-PCIE-16GB", "V100 PCIe", 16, 900, 0, "", 3, 0,
            "NVIDIA Tesla V100 data sheet", "v100-pcie"},
    Product{"V100-PCIE-32GB", "Tesla V100-PCIE-32GB", "V100 PCIe", 32, 900, 0, "", 3, 0,
            "NVIDIA V100 data sheet"},
    Product{"V100S-PCIE-32GB", "Tesla V100S-PCIE-32GB", "V100S PCIe", 32, 1134, 0, "", 3, 0,
            "NVIDIA V100 data sheet", "v100s"},
    Product{"T4", "Tesla T4", "T4", 16, 320, 0, "", 3, 0, "NVIDIA Turing whitepaper, Tesla T4"},
    Product{"A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", "A100 SXM4", 40, 1555, kOfChip, "", 4, 0,
            "NVIDIA A100 data sheet", "a100,a100-sxm4,a100-40gb"},
    Product{"A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", "A100 SXM4", 80, 2039, kOfChip, "", 4, 0,
            "NVIDIA A100 data sheet", "a100-80gb"},
    Product{"A100-PCIE-40GB", "NVIDIA A100-PCIE-40GB", "A100 PCIe", 40, 1555, kOfChip, "", 4, 0,
            "NVIDIA A100 data sheet", "a100-pcie"},
    Product{"A100-PCIE-80GB", "NVIDIA A100 80GB PCIe", "A100 PCIe", 80, 1935, kOfChip, "", 4, 0,
            "NVIDIA A100 data sheet"},
    Product{"A30", "NVIDIA A30", "A30", 24, 933, kOfChip, "", 4, 0, "NVIDIA A30 data sheet"},
    Product{"A40", "NVIDIA A40", "A40", 48, 696, kOfChip, "", 4, 0, "NVIDIA A40 data sheet"},
    Product{"A10", "NVIDIA A10", "A10", 24, 600, 0, "", 4, 0, "NVIDIA A10 data sheet"},
    Product{"RTX-3090", "NVIDIA GeForce RTX 3090", "RTX 3090", 24, 936, kOfChip, "", 4, 0,
            "NVIDIA Ampere GA102 whitepaper", "3090"},
    Product{"RTX-A6000", "NVIDIA RTX A6000", "RTX A6000", 48, 768, kOfChip, "", 4, 0,
            "NVIDIA RTX A6000 data sheet", "a6000"},
    Product{"L4", "NVIDIA L4", "L4", 24, 300, 0, "", 4, 0, "NVIDIA L4 data sheet"},
    Product{"L40S", "NVIDIA L40S", "L40S", 48, 864, 0, "", 4, 0, "NVIDIA L40S data sheet"},
    Product{"RTX-4090", "NVIDIA GeForce RTX 4090", "RTX 4090", 24, 1008, 0, "", 4, 0,
            "NVIDIA Ada GPU architecture whitepaper", "4090"},
    Product{"H100-SXM", "NVIDIA H100 80GB HBM3", "H100 SXM5", 80, 3350, kOfChip, "", 5, 0,
            "NVIDIA H100 data sheet", "h100,h100-sxm5,h100-80gb,h100-sxm-80gb"},
    Product{"H100-PCIE", "NVIDIA H100 PCIe", "H100 PCIe", 80, 2000, 12, "", 5, 0,
            "NVIDIA H100 data sheet (600 GB/s both ways over its bridges)"},
    Product{"H100-NVL", "NVIDIA H100 NVL", "H100 NVL", 94, 3900, 12, "", 5, 0,
            "NVIDIA H100 data sheet (600 GB/s both ways over its bridges)"},
    Product{"H200-SXM", "NVIDIA H200", "H200 SXM", 141, 4800, kOfChip, "", 5, 0, "NVIDIA H200 data sheet",
            "h200,h200-141gb"},
    Product{"H200-NVL", "NVIDIA H200 NVL", "H200 NVL", 141, 4800, kOfChip, "", 5, 0,
            "NVIDIA H200 data sheet"},
    Product{"GH200-96GB", "NVIDIA GH200 480GB", "GH200", 96, 4000, kOfChip, "", 0, 450,
            "NVIDIA GH200 data sheet (NVLink-C2C: 900 GB/s both ways)", "gh200"},
    Product{"GH200-144GB", "NVIDIA GH200 144G HBM3e", "GH200", 144, 4900, kOfChip, "", 0, 450,
            "NVIDIA GH200 data sheet (NVLink-C2C: 900 GB/s both ways)"},
    Product{"B200-SXM", "NVIDIA B200", "B200 SXM", 180, 8000, kOfChip, "", 5, 0,
            "NVIDIA DGX B200 data sheet: 1,440 GB and 64 TB/s for 8", "b200"},
    Product{"GB200", "NVIDIA GB200", "GB200", 186, 8000, kOfChip, "", 0, 0,
            "NVIDIA GB200 NVL72 data sheet: 372 GB and 16 TB/s for 2"},
    Product{"MI100", "AMD Instinct MI100", "MI100", 32, 1228.8, 3, "gfx908", 4, 0,
            "AMD Instinct MI100 data sheet: 3 links"},
    Product{"MI210", "AMD Instinct MI210", "MI210", 64, 1638.4, 3, "gfx90a", 4, 0,
            "AMD Instinct MI210 data sheet: 3 links"},
    Product{"MI300X", "AMD Instinct MI300X", "MI300X", 192, 5300, 7, "gfx942", 5, 0,
            "AMD Instinct MI300X data sheet: 7 links"},
    Product{"MI325X", "AMD Instinct MI325X", "MI325X", 256, 6000, 7, "gfx942", 5, 0,
            "AMD Instinct MI325X data sheet: 7 links"},
    Product{"MI350X", "AMD Instinct MI350X", "MI350X", 288, 8000, 7, "gfx950", 5, 0,
            "AMD Instinct MI350X data sheet: 7 links"},
    Product{"MI355X", "AMD Instinct MI355X", "MI355X", 288, 8000, 7, "gfx950", 5, 0,
            "AMD Instinct MI355X data sheet: 7 links"},
};

/// Its letters and digits in lower case, without the maker's words in front.
std::string key_of(std::string_view text) {
  std::string key;
  for (const char c : lower_case(text)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) key.push_back(c);
  }
  for (const std::string_view maker : {"nvidia", "tesla", "amd", "instinct", "geforce"}) {
    if (key.size() > maker.size() && key.starts_with(maker)) key.erase(0, maker.size());
  }
  return key;
}

bool is_named(const Product& product, const std::string& key) {
  if (key == key_of(product.name) || key == key_of(product.model)) return true;
  const std::vector<std::string> aliases = split(product.aliases, ',');
  return std::ranges::any_of(aliases, [&](const std::string& alias) { return key == key_of(alias); });
}

/// AMD's modules and NVIDIA's SXM are no cards.
bool is_card(const Product& product) {
  constexpr std::array<std::string_view, 4> kModules{"SXM", "GH200", "GB200", "MI3"};
  return std::ranges::none_of(
      kModules, [&](std::string_view part) { return product.name.find(part) != std::string_view::npos; });
}

int nvlink_version(int compute_capability) {
  for (const NvlinkGeneration& generation : nvlink_generations()) {
    if (generation.compute_capability == compute_capability) return generation.version;
  }
  return 0;
}

GpuLinks links_of(const Product& product) {
  GpuLinks links;
  if (product.links == 0) return links;
  links.count = product.links == kOfChip ? most_nvlinks_of(product.model) : product.links;
  const int capability = compute_capability_of(product.model);
  const GpuLinkRate rate = product.xgmi.empty() ? nvlink_rate(capability) : xgmi_rate(product.xgmi);
  links.kind = product.xgmi.empty() ? LinkKind::nvlink : LinkKind::xgmi;
  links.version = product.xgmi.empty() ? nvlink_version(capability) : 0;
  links.each = rate.bandwidth;
  links.source = rate.source;
  return links;
}

std::string memory_text(const Product& product) {
  constexpr double kTerabytes = 2500;  // from there data sheets write TB/s
  return product.gigabytes >= kTerabytes ? fmt::format("{} TB/s", product.gigabytes / 1000)
                                         : fmt::format("{} GB/s", product.gigabytes);
}

GpuKind kind_of(const Product& product) {
  GpuKind kind{
      std::string(product.model),
      gibibytes(static_cast<std::uint64_t>(product.gibibytes)),
      gigabytes_per_second(product.gigabytes),
      {fmt::format("{}: {} GB of memory at {}", product.label, product.gibibytes, memory_text(product)),
       std::string(product.source)}};
  kind.product = product.name;
  kind.links = links_of(product);
  kind.is_card = is_card(product);
  kind.pcie_generation = product.pcie;
  kind.c2c = gigabytes_per_second(product.c2c);
  return kind;
}

/// To three digits, as it is published.
Bandwidth published(const InfinibandRate& rate) {
  return gigabytes_per_second(std::stod(significant(rate.payload().gigabytes_per_second())));
}

NicPart infiniband(const InfinibandRate& rate, std::string model) {
  const Bandwidth payload = published(rate);
  return {std::move(model),
          NicKind::infiniband,
          payload,
          {fmt::format("{} 4x: {} of payload ({} Gb/s{}, less {} % for headers and gaps)",
                       upper_case(rate.name), to_text(payload), rate.gigabits,
                       rate.gigabits < 100 ? "" : " of data", rate.name == "qdr" ? 20 : 3),
           "InfiniBand Trade Association, rate table; the 3 % as in published figures"}};
}

std::vector<std::string> generations() {
  std::vector<std::string> names;
  for (const InfinibandRate& rate : infiniband_rates()) names.emplace_back(rate.name);
  return names;
}

/// The generation that the rate is of, by its name or its number.
std::optional<InfinibandRate> generation_of(const std::string& name, std::optional<Bandwidth> rate) {
  if (!rate) return infiniband_rate(name);
  const double gigabits = rate->value * 8 / 1e9;
  const double whole = std::round(gigabits);
  if (std::abs(gigabits - whole) > 1e-6 || whole > 1e6) return std::nullopt;
  return infiniband_rate(static_cast<int>(whole));
}

std::vector<std::string> names_and_aliases() {
  std::vector<std::string> names = gpu_products();
  for (const Product& product : kProducts) {
    for (std::string& alias : split(product.aliases, ',')) names.push_back(std::move(alias));
  }
  return names;
}

}  // namespace

std::vector<std::string> gpu_products() {
  std::vector<std::string> names;
  for (const Product& product : kProducts) names.emplace_back(product.name);
  return names;
}

GpuKind gpu_product(std::string_view name) {
  const std::string key = key_of(name);
  const auto found =
      std::ranges::find_if(kProducts, [&](const Product& product) { return is_named(product, key); });
  if (found == kProducts.end()) {
    const std::string_view shown = name.substr(0, 64);
    usage_error("unknown GPU '{}'{} choose from {}", shown, did_you_mean(shown, names_and_aliases()),
                fmt::join(gpu_products(), ", "));
  }
  return kind_of(*found);
}

NicPart edr(std::string model) { return infiniband(*infiniband_rate("edr"), std::move(model)); }
NicPart hdr(std::string model) { return infiniband(*infiniband_rate("hdr"), std::move(model)); }
NicPart ndr(std::string model) { return infiniband(*infiniband_rate("ndr"), std::move(model)); }

NicPart nic_by_rate(NicProtocol protocol, const std::string& rate, const std::string& what,
                    const std::string& source) {
  const std::string name = lower_case(rate);
  const bool is_word = !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0;
  if (is_word && !infiniband_rate(name))
    usage_error("{}: {}, or write it as 400Gb/s or 100GbE", what, unknown_name("rate", rate, generations()));
  if (is_word && protocol != NicProtocol::infiniband)
    usage_error(
        "{}: {} is a generation of InfiniBand, and the NICs are {}; write {}Gb/s, or let them be infiniband",
        what, rate, title_of(protocol), infiniband_rate(name)->gigabits);
  std::optional<Bandwidth> bandwidth;
  if (!is_word) bandwidth = ethernet_rate(name);
  if (!is_word && !bandwidth) bandwidth = parse_bandwidth(rate, what);
  if (bandwidth && *bandwidth > kMostOfPort) {
    usage_error("{}: {} is {}, more than any NIC port carries; 1 GB/s is 8 Gb/s", what, rate,
                to_text(*bandwidth));
  }
  const auto generation = generation_of(name, bandwidth);
  if (protocol == NicProtocol::infiniband && generation) {
    NicPart part = infiniband(*generation, upper_case(generation->name) + " InfiniBand");
    part.citation.source = fmt::format("{}; {}", source, part.citation.source);
    return part;
  }
  return {fmt::format("{} of {}", title_of(protocol), rate),
          protocol == NicProtocol::infiniband ? NicKind::infiniband : NicKind::ethernet,
          *bandwidth,
          {fmt::format("{} NICs of {}: {}", title_of(protocol), rate, to_text(*bandwidth)), source},
          std::string(device_prefix(protocol))};
}

}  // namespace polyring::presets
