// What NVML's report adds to a machine, and what somebody should look at.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "topology/gpu_links.hpp"
#include "topology/inventory/probe/nvml.hpp"
#include "topology/inventory/probe/nvml_health.hpp"
#include "topology/inventory/probe/pci_links.hpp"

namespace polyring::probe {
namespace {

/// Drivers give the line's speed, which is a few percent off the published payload: 25781 MB/s for a V100's
/// link, 26562 for an H100's, 53125 for a B300's. What is further off is another speed.
Bandwidth published_for_speed(unsigned megabytes) {
  const double speed = megabytes * 1e6;
  for (const NvlinkGeneration& generation : nvlink_generations()) {
    const Bandwidth payload = generation.bandwidth;
    if (speed >= 0.97 * payload.value && speed <= 1.07 * payload.value) return payload;
  }
  return {speed};
}

/// By nvmlNvlinkVersion_t, chapter «NvLink Methods»: 1 is 1.0; 2, 3 are 2.0, 2.2; 4, 5 are 3.0, 3.1; 6 is
/// 4.0; 7 is 5.0.
Bandwidth published_for_version(unsigned number) {
  constexpr std::array kVersions{0, 1, 2, 2, 3, 3, 4, 5};
  if (number >= kVersions.size()) return {};
  const auto generations = nvlink_generations();
  const auto found = std::ranges::find(generations, kVersions[number], &NvlinkGeneration::version);
  return found == generations.end() ? Bandwidth{} : found->bandwidth;
}

/// nvmlGpuP2PStatus_t.
std::string_view peer_fault(unsigned char status) {
  switch (status) {
    case 1:
      return "the chipset does not support it";
    case 2:
      return "the GPU does not support it";
    case 3:
      return "the I/O hub's topology does not support it";
    case 4:
      return "it is switched off in the driver's settings";
    case 5:
      return "it is not supported";
    default:
      return "the driver does not say why";
  }
}

/// The package that a GPU's PCIe way leads to; the first when there is none.
DeviceId package_above(const Machine& machine, DeviceId device) {
  for (std::size_t step = 0; step <= machine.links.size() && device.kind != DeviceKind::package; ++step) {
    const auto up = std::ranges::find_if(
        machine.links, [&](const Link& link) { return link.kind == LinkKind::pcie && link.from == device; });
    if (up == machine.links.end()) break;
    device = up->to;
  }
  return device.kind == DeviceKind::package ? device : DeviceId{DeviceKind::package, 0};
}

class Merger {
 public:
  Merger(const NvmlReport& report, Machine& machine) : report_(report), machine_(machine) {}

  void merge() {
    // Where hwloc has NVLinks, it has them from an older reading of the same driver.
    std::erase_if(machine_.links, [](const Link& link) { return link.kind == LinkKind::nvlink; });
    machine_.nvswitches = 0;
    for (std::size_t i = 0; i < count(); ++i) ids_.push_back(place(i));
    for (std::size_t i = 0; i < count(); ++i) {
      if (!ids_[i]) continue;
      describe(report_.gpus[i], *ids_[i]);
      collect_links(report_.gpus[i], *ids_[i]);
    }
    add_links();
    for (std::size_t i = 0; i < count(); ++i) {
      if (!ids_[i]) continue;
      remark_links(report_.gpus[i], *ids_[i]);
      remark_health(report_.gpus[i], *ids_[i]);
    }
    remark_peers();
    remark_slices();
    cite();
  }

 private:
  std::size_t count() const {
    return static_cast<std::size_t>(std::clamp(report_.gpu_count, 0, kMostNvmlGpus));
  }

  template <typename... Args>
  void remark(fmt::format_string<Args...> sentence, Args&&... args) {
    machine_.remarks.push_back(fmt::format(sentence, std::forward<Args>(args)...));
  }

  std::optional<DeviceId> gpu_at(const std::string& pci) const {
    const auto gpu = std::ranges::find(machine_.gpus, pci, &Gpu::pci);
    if (pci.empty() || gpu == machine_.gpus.end()) return std::nullopt;
    return DeviceId{DeviceKind::gpu, static_cast<int>(gpu - machine_.gpus.begin())};
  }

  Gpu& gpu(DeviceId id) { return machine_.gpus[static_cast<std::size_t>(id.index)]; }

  /// The machine's GPU that is NVML's i-th; a new one where PCI shows none, as in some virtual machines.
  std::optional<DeviceId> place(std::size_t i) {
    const NvmlGpu& found = report_.gpus[i];
    if (!found.read) {
      remark("NVML cannot open its GPU {} (error {}{}); see dmesg for what the driver says of it", i,
             found.error, found.error == 15 ? ": it has fallen off the bus" : "");
      return std::nullopt;
    }
    if (const auto known = gpu_at(text_of(found.pci))) return known;
    const DeviceId id{DeviceKind::gpu, static_cast<int>(machine_.gpus.size())};
    machine_.gpus.push_back({fmt::format("gpu{}", id.index), {}, text_of(found.pci), -1, -1, {}, {}});
    machine_.links.push_back({id, {DeviceKind::package, 0}, LinkKind::pcie, {}, {}});
    package_is_unknown(machine_, id);
    return id;
  }

  void describe(const NvmlGpu& found, DeviceId id) {
    Gpu& known = gpu(id);
    if (found.name[0] != 0) known.model = text_of(found.name);
    if (found.memory_bytes > 0) known.memory = {found.memory_bytes};
    // Two transfers in a clock, as CUDA's deviceQuery sample counts them.
    const double bytes_per_clock = 2.0 * found.memory_bus_bits / 8;
    if (bytes_per_clock > 0) known.memory_bandwidth = {bytes_per_clock * found.memory_megahertz * 1e6};
  }

  void collect_links(const NvmlGpu& found, DeviceId id) {
    std::map<std::string, int> elsewhere;
    for (const NvmlLink& link : found.links) {
      if (!link.present || !link.active) continue;
      const std::string pci = text_of(link.remote_pci);
      const auto peer = gpu_at(pci);
      if (link.remote == NvmlRemote::npu) {
        add(id, package_above(machine_, id), link);
      } else if (peer) {
        add(id, *peer, link);
      } else if (link.remote == NvmlRemote::gpu) {
        ++elsewhere[pci];
      } else {
        // A switch, also where an older driver does not say what is at the other end.
        machine_.nvswitches = 1;
        add(id, {DeviceKind::nvswitch, 0}, link);
      }
    }
    for (const auto& [pci, links] : elsewhere) {
      remark("{} has {} NVLink{} to a GPU at {} that is not visible here", gpu(id).name, links,
             links == 1 ? "" : "s", pci.empty() ? "an unknown address" : pci);
    }
    if (found.c2c_links > 0) {
      machine_.links.push_back({id,
                                package_above(machine_, id),
                                LinkKind::c2c,
                                {1e6 * found.c2c_links * found.c2c_megabytes_per_second},
                                {}});
    }
  }

  void add(DeviceId from, DeviceId to, const NvmlLink& link) {
    if (from == to) return;
    Sum& sum = sums_[{from, to}];
    const Bandwidth one = nvlink_bandwidth(link);
    sum.unknown |= !one.known();
    sum.bandwidth = sum.bandwidth + one;
    ++sum.count;
  }

  void add_links() {
    for (const auto& [ends, sum] : sums_) {
      const auto& [from, to] = ends;
      Bandwidth bandwidth = sum.unknown ? Bandwidth{} : sum.bandwidth;
      int count = sum.count;
      const auto back = sums_.find({to, from});
      if (back != sums_.end()) {
        // GPUs see a link from both ends; where they disagree, the lesser counts.
        if (to < from) continue;
        bandwidth = std::min(bandwidth, back->second.unknown ? Bandwidth{} : back->second.bandwidth);
        count = std::min(count, back->second.count);
      }
      machine_.links.push_back({from, to, LinkKind::nvlink, bandwidth, {}, count});
    }
  }

  static std::pair<std::vector<std::size_t>, int> inactive_and_active(const NvmlGpu& found) {
    std::vector<std::size_t> inactive;
    int active = 0;
    for (std::size_t i = 0; i < found.links.size(); ++i) {
      if (!found.links[i].present) continue;
      if (found.links[i].active)
        ++active;
      else
        inactive.push_back(i);
    }
    return {inactive, active};
  }

  /// Whether bridges join cards of this model in pairs: then one without is no fault. Modules (SXM) have all
  /// of their links on the board.
  bool are_bridged(const std::string& model) const {
    if (model.find("SXM") != std::string::npos) return false;
    std::map<DeviceId, int> peers;
    for (const auto& [ends, sum] : sums_) {
      if (machine_.gpus[static_cast<std::size_t>(ends.first.index)].model != model) continue;
      if (ends.second.kind != DeviceKind::gpu) return false;
      ++peers[ends.first];
    }
    return std::ranges::all_of(peers, [](const auto& peer) { return peer.second == 1; });
  }

  void remark_links(const NvmlGpu& found, DeviceId id) {
    if (found.mig) return;
    const auto [inactive, active] = inactive_and_active(found);
    int most = 0;
    for (std::size_t i = 0; i < count(); ++i) {
      if (report_.gpus[i].read && text_of(report_.gpus[i].name) == text_of(found.name))
        most = std::max(most, inactive_and_active(report_.gpus[i]).second);
    }
    if (inactive.empty() || most == 0 || ((active == 0 || active == most) && are_bridged(gpu(id).model)))
      return;
    remark("{}: {} of its {} NVLinks are inactive (link {}); see nvidia-smi nvlink -s", gpu(id).name,
           inactive.size(), inactive.size() + static_cast<std::size_t>(active), fmt::join(inactive, ", "));
    machine_.link_faults.push_back({gpu(id).name, machine_.remarks.back()});
  }

  void remark_health(const NvmlGpu& found, DeviceId id) {
    const std::string& name = gpu(id).name;
    const std::vector<std::string> reasons = throttle_reasons(found.clock_reasons);
    if (!reasons.empty())
      remark("{} holds its clocks down: {}; see nvidia-smi -q -d PERFORMANCE", name,
             fmt::join(reasons, ", "));
    if (found.uncorrected_errors > 0)
      remark("{} has had {} uncorrected ECC error{} since its driver was loaded; see nvidia-smi -q -d ECC",
             name, found.uncorrected_errors, found.uncorrected_errors == 1 ? "" : "s");
    if (found.row_remap_failed)
      remark("{} could not remap a faulty row of its memory: have it replaced", name);
    if (found.row_remap_pending || found.retired_pages_pending)
      remark("{} waits to retire faulty memory after ECC errors: reset it, or reboot", name);
    if (found.ecc_change_pending) remark("{} changes its ECC mode at the next reset or reboot", name);
  }

  bool joined_by_nvlink(DeviceId a, DeviceId b) const {
    const auto joined = [&](DeviceId from, DeviceId to) { return sums_.contains({from, to}); };
    constexpr DeviceId kSwitch{DeviceKind::nvswitch, 0};
    return joined(a, b) || joined(b, a) || (joined(a, kSwitch) && joined(b, kSwitch));
  }

  void remark_peers() {
    int pairs = 0;
    std::vector<std::string> apart;
    unsigned char status = 0;
    for (std::size_t a = 0; a < count(); ++a) {
      for (std::size_t b = a + 1; b < count(); ++b) {
        if (!ids_[a] || !ids_[b] || !joined_by_nvlink(*ids_[a], *ids_[b])) continue;
        // Slices reach no other GPU, whatever joins them.
        if (report_.gpus[a].mig || report_.gpus[b].mig) continue;
        ++pairs;
        const unsigned char both = std::max(report_.gpus[a].peer_nvlink[b], report_.gpus[b].peer_nvlink[a]);
        if (both == 0 || both == kPeerUnknown) continue;
        status = both;
        apart.push_back(fmt::format("{} and {}", gpu(*ids_[a]).name, gpu(*ids_[b]).name));
      }
    }
    if (apart.empty()) return;
    remark("{} of {} pairs of GPUs that NVLink joins cannot reach each other over it ({} first): {}{}",
           apart.size(), pairs, apart[0], peer_fault(status),
           machine_.nvswitches > 0 ? "; see whether nvidia-fabricmanager runs" : "");
  }

  void remark_slices() {
    std::vector<std::string> cut;
    for (std::size_t i = 0; i < count(); ++i) {
      if (ids_[i] && report_.gpus[i].mig) cut.push_back(gpu(*ids_[i]).name);
    }
    if (cut.empty()) return;
    remark(
        "{} {} in MIG mode: jobs get slices, which reach no other GPU; links, paths and what is expected are "
        "of whole GPUs, which nvidia-smi -mig 0 (as root) makes of them",
        fmt::join(cut, ", "), cut.size() == 1 ? "is" : "are");
  }

  void cite() {
    if (count() == 0) return;
    machine_.citations.push_back(
        {"GPU models and memory; memory bandwidth: two transfers in each clock of the bus",
         "NVML on this machine"});
    if (sums_.empty()) return;
    machine_.citations.push_back(
        {"NVLink: active links times the payload of one per direction, 20 GB/s (NVLink 1), 25 (2 to 4) or "
         "50 (5), less where the driver reports a lower speed",
         "NVML on this machine; NVIDIA's architecture white papers"});
  }

  struct Sum {
    Bandwidth bandwidth;
    bool unknown = false;  // of some link
    int count = 0;
  };

  const NvmlReport& report_;
  Machine& machine_;
  std::vector<std::optional<DeviceId>> ids_;  // of NVML's GPUs
  std::map<std::pair<DeviceId, DeviceId>, Sum> sums_;
};

}  // namespace

Bandwidth nvlink_bandwidth(const NvmlLink& link) {
  const Bandwidth by_version = published_for_version(link.version);
  if (link.megabytes_per_second == 0) return by_version;
  const Bandwidth by_speed = published_for_speed(link.megabytes_per_second);
  // Some drivers call an H100's links version 5.0; its speed gives it away.
  return by_version.known() ? std::min(by_version, by_speed) : by_speed;
}

void merge_nvml(const NvmlReport& report, Machine& machine) { Merger(report, machine).merge(); }

}  // namespace polyring::probe
