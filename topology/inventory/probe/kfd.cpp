#include "topology/inventory/probe/kfd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "topology/gpu_links.hpp"
#include "topology/inventory/probe/files.hpp"

namespace polyring::probe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNodes = "class/kfd/kfd/topology/nodes";

using Properties = std::map<std::string, unsigned long long>;

/// Lines such as `simd_count 440`.
Properties properties_of(const std::string& text) {
  Properties properties;
  std::istringstream lines(text);
  std::string key;
  unsigned long long value = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (words >> key >> value) properties[key] = value;
  }
  return properties;
}

unsigned long long value_of(const Properties& properties, const std::string& key) {
  const auto found = properties.find(key);
  return found == properties.end() ? 0 : found->second;
}

/// A location_id has the bus in its upper byte, then five bits of device. The function's three are the number
/// of the partition where a GPU is cut into several, each with a node (kfd_topology_add_device()); GPUs are
/// function 0.
std::string address_of(const Properties& node) {
  const unsigned long long location = value_of(node, "location_id");
  return fmt::format("{:04x}:{:02x}:{:02x}.0", value_of(node, "domain"), location >> 8 & 0xff,
                     location >> 3 & 0x1f);
}

/// `gfx90a` of 90010: two decimal digits each for the major version, the minor one and the stepping. Empty
/// when unknown.
std::string architecture_of(const Properties& node) {
  const unsigned long long version = value_of(node, "gfx_target_version");
  if (version == 0) return {};
  return fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}

/// All links between two GPUs in one direction, where the driver says `megabytes`; 0 when unknown.
///
/// Until the driver asked links for their speed (amdgpu_xgmi.c, 2025) it took 16 lanes of 25 Gb/s for one of
/// any GPU from gfx90a on, which only gfx90a's have, and said 0 of older ones
/// (amdgpu_amdkfd_get_xgmi_bandwidth_mbytes() of amdgpu_amdkfd.c): then the number of links is what it tells.
/// Of older GPUs one link joins a pair, as RCCL too counts where the driver does not know.
GpuLinkRate xgmi_between(unsigned long long megabytes, const std::string& architecture) {
  constexpr unsigned long long kAssumed = 16 * 25000 / 8;
  const GpuLinkRate one = xgmi_rate(architecture);
  const GpuLinkRate told{{static_cast<double>(megabytes) * 1e6}, {}};
  if (!one.bandwidth.known() || megabytes % kAssumed != 0) return told;
  if (megabytes > 0) return {static_cast<double>(megabytes / kAssumed) * one.bandwidth, one.source};
  const bool before_gfx90a = architecture == "gfx906" || architecture == "gfx908";
  return before_gfx90a ? one : told;
}

/// The device of each kfd node that the machine has.
class Nodes {
 public:
  Nodes(const Sysfs& sysfs, const Machine& machine) {
    for (const fs::path& entry : sysfs.entries(kNodes)) {
      const auto number = whole_number(entry.filename().string());
      if (!number) continue;
      const Properties node = properties_of(sysfs.text(entry / "properties"));
      if (node.empty()) ++unreadable_;
      architectures_[*number] = architecture_of(node);
      if (value_of(node, "simd_count") > 0) add_gpu(*number, address_of(node), machine);
      if (value_of(node, "cpu_cores_count") > 0) add_cpu(*number, machine);
    }
  }

  std::size_t gpus() const { return gpus_.size(); }
  /// Nodes of GPUs: more than GPUs where some are partitioned.
  std::size_t partitions() const { return partitions_; }
  int unreadable() const { return unreadable_; }

  std::optional<DeviceId> at(unsigned long long node) const {
    const auto found = devices_.find(static_cast<long>(node));
    if (found == devices_.end()) return std::nullopt;
    return found->second;
  }

  /// Of a GPU's node, as xgmi_rate() takes it.
  const std::string& architecture(unsigned long long node) const {
    return architectures_.at(static_cast<long>(node));
  }

 private:
  void add_gpu(long node, const std::string& pci, const Machine& machine) {
    ++partitions_;
    gpus_.insert(pci);
    const auto gpu = std::ranges::find(machine.gpus, pci, &Gpu::pci);
    if (gpu != machine.gpus.end())
      devices_[node] = {DeviceKind::gpu, static_cast<int>(gpu - machine.gpus.begin())};
  }

  /// The first kfd nodes are the NUMA nodes that have processors, in their order. An accelerator that is
  /// both, as MI300A, counts as its GPU.
  void add_cpu(long node, const Machine& machine) {
    if (devices_.contains(node)) return;
    for (std::size_t i = 0; i < machine.packages.size(); ++i) {
      if (std::ranges::find(machine.packages[i].numa_nodes, node) != machine.packages[i].numa_nodes.end())
        devices_[node] = {DeviceKind::package, static_cast<int>(i)};
    }
  }

  std::map<long, DeviceId> devices_;
  std::map<long, std::string> architectures_;
  std::set<std::string> gpus_;  // PCI addresses
  std::size_t partitions_ = 0;
  int unreadable_ = 0;
};

struct Links {
  /// By pair, lower device first: each direction has its own entry, and they should agree; the lesser counts.
  std::map<std::pair<DeviceId, DeviceId>, Bandwidth> bandwidths;
  std::set<std::string_view> sources;  // of what the driver does not know
  bool without_bandwidth = false;      // two GPUs are joined, directly or not, and nothing tells by how much
};

void add_links_of(const Sysfs& sysfs, const fs::path& node, const Nodes& nodes, Links& links) {
  constexpr unsigned long long kXgmi = 11;  // CRAT_IOLINK_TYPE_XGMI of kfd_crat.h
  constexpr unsigned long long kOneHop = 15;
  for (const fs::path& entry : sysfs.entries(node / "io_links")) {
    const Properties link = properties_of(sysfs.text(entry / "properties"));
    const auto from = nodes.at(value_of(link, "node_from"));
    const auto to = nodes.at(value_of(link, "node_to"));
    if (value_of(link, "type") != kXgmi || !from || !to || *from == *to) continue;
    if (from->kind == DeviceKind::package && to->kind == DeviceKind::package) continue;
    const unsigned long long megabytes = value_of(link, "max_bandwidth");
    const bool peers = from->kind == to->kind;
    // Pairs that other GPUs lie between are listed too, with a weight for every hop and without a bandwidth;
    // and so are all partitions of different GPUs.
    if (megabytes == 0 && value_of(link, "weight") > kOneHop) {
      links.without_bandwidth = links.without_bandwidth || peers;
      continue;
    }
    const GpuLinkRate rate =
        xgmi_between(megabytes, peers ? nodes.architecture(value_of(link, "node_from")) : std::string());
    if (!rate.source.empty()) links.sources.insert(rate.source);
    const auto [known, is_new] = links.bandwidths.try_emplace(std::minmax(*from, *to), rate.bandwidth);
    if (!is_new) known->second = std::min(known->second, rate.bandwidth);
  }
}

}  // namespace

ProbeSource add_xgmi(const Sysfs& sysfs, Machine& machine) {
  if (sysfs.entries(kNodes).empty())
    return {"ROCm", false, "sysfs has no class/kfd/kfd/topology/nodes; it comes with AMD's amdgpu driver"};
  const Nodes nodes(sysfs, machine);
  Links links;
  for (const fs::path& node : sysfs.entries(kNodes)) add_links_of(sysfs, node, nodes, links);
  for (const auto& [ends, bandwidth] : links.bandwidths) {
    const auto& [lower, higher] = ends;
    // From the GPU to the package, and otherwise from the lower GPU to the higher.
    const bool peers = lower.kind == higher.kind;
    machine.links.push_back({peers ? lower : higher, peers ? higher : lower, LinkKind::xgmi, bandwidth, {}});
  }
  const auto joins_gpus = [](const auto& link) { return link.first.first.kind == link.first.second.kind; };
  if (links.without_bandwidth && std::ranges::none_of(links.bandwidths, joins_gpus))
    machine.gpu_links_known = false;
  if (!links.bandwidths.empty())
    machine.citations.push_back(
        {"xGMI: max_bandwidth of the direct links", "AMD's kfd in sysfs of this machine"});
  for (const std::string_view source : links.sources)
    machine.citations.push_back({"xGMI: one link, which this driver does not know", std::string(source)});
  std::string detail =
      fmt::format("kfd: {} GPU{}, {} xGMI link{}", nodes.gpus(), nodes.gpus() == 1 ? "" : "s",
                  links.bandwidths.size(), links.bandwidths.size() == 1 ? "" : "s");
  if (nodes.partitions() > nodes.gpus())
    machine.remarks.push_back(fmt::format(
        "AMD's driver cuts the {} GPUs into {} partitions (DPX, QPX or CPX): jobs see those; links, paths "
        "and what is expected are of whole GPUs, which amd-smi set --compute-partition SPX (as root) makes "
        "of them",
        nodes.gpus(), nodes.partitions()));
  if (nodes.unreadable() > 0)
    detail += fmt::format(
        "; {} of its nodes may not be read: allow this user or container their GPUs (group render)",
        nodes.unreadable());
  return {"ROCm", true, detail};
}

}  // namespace polyring::probe
