#include "topology/inventory/formats/nccl_xml_host.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "topology/device_identity.hpp"
#include "topology/gpu_links.hpp"
#include "topology/inventory/formats/nccl_device.hpp"
#include "topology/inventory/formats/nccl_xml_keys.hpp"
#include "topology/inventory/probe/pci_ids.hpp"
#include "topology/inventory/probe/remarks.hpp"
#include "topology/inventory/probe/sysfs.hpp"
#include "topology/link_names.hpp"

namespace polyring::nccl_xml {
namespace {

constexpr int kNoDev = std::numeric_limits<int>::max();
// More than any host has, and few enough that all paths between them are found in no time.
constexpr std::size_t kMostCpus = 64;
constexpr std::int64_t kMostCpuNumber = 0xffff;  // of a family or a model
constexpr std::size_t kMostGpus = 64;
constexpr std::size_t kMostNics = 128;
constexpr std::size_t kMostSwitches = 512;
constexpr std::int64_t kMostLinks = 1024;  // between two devices
// In Mb/s. InfiniBand's roadmap (infinibandta.org) ends at LDR, 3.2 Tb/s; Ethernet's at 1.6 Tb/s (IEEE
// P802.3dj).
constexpr std::int64_t kFastestPort = 3'200'000;
constexpr std::int64_t kMostSpeed = 10'000'000'000;  // that is read at all

/// Empty where the file leaves it to NCCL to look it up on the machine.
std::string class_of(const Element& pci) {
  const std::string text = pci.text("class");
  if (!text.empty() && !text.starts_with("0x")) pci.refuse("class", "a PCI class such as 0x030200");
  return text;
}

/// Display and 3D controllers of those who make GPUs for computing, which leaves out the management VGA of
/// servers; AMD's newer ones are processing accelerators.
bool is_gpu(const Element& pci) {
  const std::string text = class_of(pci);
  if (text.starts_with("0x12")) return true;
  if (!text.starts_with("0x03")) return false;
  const auto vendor = pci.integer("vendor", 0, 0xffff);
  constexpr std::array<std::int64_t, 2> kMakers{0x10de, 0x1002};
  return !vendor || std::ranges::find(kMakers, *vendor) != kMakers.end();
}

bool is_nic(const Element& pci) { return class_of(pci).starts_with("0x02"); }

bool is_device(const Element& element) {
  if (element.name() == "gpu" || element.name() == "nic") return true;
  return element.name() == "pci" && (is_gpu(element) || is_nic(element));
}

NicKind nic_kind(const Element& pci) {
  if (class_of(pci).starts_with("0x0207")) return NicKind::infiniband;
  // Others are 0x0280, ConnectX-3, which runs as either, and 0x0208, Omni-Path.
  return class_of(pci).starts_with("0x0200") ? NicKind::ethernet : NicKind::unknown;
}

/// The PCIe link above the device, per direction; 0 when unknown. `Unknown` is what Linux writes for speeds
/// that it does not know, and 255 lanes are what virtual devices have.
Bandwidth pcie_link(const Element& pci) {
  if (const auto gigabytes = pci.number(kBandwidthKey, kMostGigabytes))
    return gigabytes_per_second(*gigabytes);
  const std::int64_t lanes = pci.integer("link_width", 0, 255).value_or(0);
  const std::string speed = pci.text("link_speed");
  if (speed.empty() || speed.starts_with("Unknown")) return {};
  double gigatransfers = 0;
  const char* const end = speed.data() + speed.size();
  const auto [rest, error] = std::from_chars(speed.data(), end, gigatransfers, std::chars_format::fixed);
  const bool in_range = gigatransfers > 0 && gigatransfers <= 1024;
  if (error != std::errc{} || !in_range || !std::string_view(rest, end).starts_with(" GT/s")) {
    pci.refuse("link_speed", "a PCIe speed such as 16.0 GT/s PCIe");
  }
  return lanes > 32 ? Bandwidth{} : as_kept(probe::pcie_bandwidth(speed, static_cast<int>(lanes)));
}

int dev_of(const Element& element) {
  const std::int64_t dev = element.integer("dev", -1, 1'000'000).value_or(-1);
  return dev < 0 ? kNoDev : static_cast<int>(dev);
}

DeviceIdentity pci_identity(const Element& pci) {
  DeviceIdentity identity;
  identity.vendor = static_cast<unsigned>(pci.integer("vendor", 0, 0xffff).value_or(0));
  identity.device = static_cast<unsigned>(pci.integer("device", 0, 0xffff).value_or(0));
  return identity;
}

/// Of a bridge, by which two levels of a switch are told.
probe::PciIdentity bridge_identity(const Element& pci) {
  const auto id = [&](const char* name) {
    return static_cast<unsigned>(pci.integer(name, 0, 0xffff).value_or(0));
  };
  return {id("vendor"), id("device"), id("subsystem_vendor"), id("subsystem_device")};
}

CpuIdentity cpu_identity(const Element& cpu) {
  const auto number = [&](const char* name) {
    return static_cast<int>(cpu.integer(name, -1, kMostCpuNumber).value_or(-1));
  };
  return {cpu.text("arch"), cpu.text("vendor"), number("familyid"), number("modelid")};
}

std::string cpu_model(const CpuIdentity& cpu) {
  if (cpu.vendor.empty()) return cpu.architecture;
  if (cpu.family < 0 || cpu.model < 0) return cpu.vendor;
  return fmt::format("{} family {} model {}", cpu.vendor, cpu.family, cpu.model);
}

/// NCCL prints InfiniBand's big-endian number as the host reads it, and those hosts are little-endian.
std::string system_guid(const Element& net) {
  const std::string text = net.text("guid");
  std::uint64_t guid = 0;
  const bool hex = text.starts_with("0x");
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + (hex ? 2 : 0), end, guid, hex ? 16 : 10);
  if (!text.empty() && (error != std::errc{} || rest != end))
    net.refuse("guid", "a number such as 0x506b4b0300c0ffee");
  return guid == 0 ? std::string() : fmt::format("0x{:016x}", swapped(guid));
}

/// Addresses have no leading zeros beyond four digits, so the longer one is the larger.
auto order_of(int dev, const std::string& address) { return std::tuple(dev, address.size(), address); }

}  // namespace

void HostReader::check_count(std::size_t count, std::size_t most, std::string_view what) const {
  if (count <= most) return;
  usage_error(
      "'{}' has more than {} {} on one host, which no host has; let NCCL write it again with "
      "NCCL_TOPO_DUMP_FILE=FILE",
      file_, most, what);
}

void HostReader::add_cpu(const Element& cpu) {
  const int index = static_cast<int>(machine_.packages.size());
  const std::int64_t numa = cpu.integer("numaid", -1, 1'000'000).value_or(-1);
  Package package;
  package.name = fmt::format("package{}", index);
  package.cpu = cpu_identity(cpu);
  package.model = cpu_model(package.cpu);
  if (numa >= 0 && numa < kMadeUpCpu) package.numa_nodes.push_back(static_cast<int>(numa));
  machine_.packages.push_back(std::move(package));
  check_count(machine_.packages.size(), kMostCpus, "CPUs");
  const DeviceId id{DeviceKind::package, index};
  cpu.each_child([&](const Element& child) {
    if (child.name() == "pci") add_pci(child, id, index);
    if (child.name() == "nic") add_nic(child, "", "", NicKind::ethernet, {id, {}, index});
  });
}

void HostReader::add_pci(const Element& pci, DeviceId parent, int package) {
  const std::string address = pci.bus_address("busid");
  const Place place{parent, pcie_link(pci), package};
  const auto nic = pci.child("nic");
  if (pci.child("gpu") || (!nic && is_gpu(pci))) return add_gpu(pci, place);
  if (nic) return add_nic(*nic, address, model_of(pci_identity(pci)), nic_kind(pci), place);
  if (is_nic(pci)) {
    new_nic("nic@" + address, address, model_of(pci_identity(pci)), nic_kind(pci), place);
    return;
  }
  if (!pci.any_below(is_device)) {
    if (class_of(pci).empty()) unnamed_.push_back(address);
    return;
  }
  const DeviceId id{DeviceKind::pci_switch, static_cast<int>(machine_.switches.size())};
  machine_.switches.push_back({fmt::format("switch{}", id.index), address});
  check_count(machine_.switches.size(), kMostSwitches, "PCIe switches");
  machine_.links.push_back({id, parent, LinkKind::pcie, place.bandwidth, {}});
  const probe::PciIdentity identity = bridge_identity(pci);
  pci.each_child("pci", [&](const Element& child) {
    if (probe::are_one_switch(identity, bridge_identity(child))) {
      child.each_child("pci", [&](const Element& below) { add_pci(below, id, package); });
    } else {
      add_pci(child, id, package);
    }
  });
}

void HostReader::add_gpu(const Element& pci, const Place& place) {
  DeviceIdentity identity = pci_identity(pci);
  FoundGpu found{{}, place, kNoDev, pci.child("gpu")};
  if (found.element) {
    found.dev = dev_of(*found.element);
    identity.architecture = found.element->text("gcn");
    // AMD's `sm` is a number of compute units.
    if (identity.architecture.empty()) {
      identity.compute_capability = static_cast<int>(found.element->integer("sm", 0, 10'000).value_or(0));
    }
  }
  found.gpu.model = model_of(identity);
  found.gpu.pci = pci.bus_address("busid");
  int parts = 0;
  pci.each_child("gpu", [&](const Element&) { ++parts; });
  if (parts > 1) shared_.push_back(found.gpu.pci);
  const bool again =
      std::ranges::any_of(gpus_, [&](const FoundGpu& other) { return other.gpu.pci == found.gpu.pci; });
  if (again) pci.refuse("busid", "the address of one GPU only");
  gpus_.push_back(std::move(found));
  check_count(gpus_.size(), kMostGpus, "GPUs");
}

void HostReader::add_nic(const Element& nic, const std::string& address, const std::string& model,
                         NicKind kind, const Place& place) {
  const std::size_t first = nics_.size();
  nic.each_child("net", [&](const Element& net) { add_net(net, address, model, kind, place, first); });
  if (nics_.size() == first) new_nic(address.empty() ? "nic" : "nic@" + address, address, model, kind, place);
}

void HostReader::add_net(const Element& net, const std::string& address, const std::string& model,
                         NicKind kind, const Place& place, std::size_t first_of_adapter) {
  const std::int64_t number = net.integer("port", 0, 255).value_or(0);
  const std::int64_t stated = net.integer("speed", -1, kMostSpeed).value_or(0);
  const std::int64_t speed = stated > kFastestPort ? 0 : stated;
  Port port{number == 0 ? 1 : static_cast<int>(number), true, port_bandwidth(speed, kind)};
  if (const auto gigabytes = net.number(kBandwidthKey, kMostGigabytes))
    port.bandwidth = gigabytes_per_second(*gigabytes);
  std::string name = net.text("name");
  if (name.empty()) name = address.empty() ? "nic" : "nic@" + address;
  const std::string text = fmt::format("{} port {} ({})", name, port.number, stated);
  if (stated > kFastestPort && !port.bandwidth.known() &&
      std::ranges::find(too_fast_, text) == too_fast_.end())
    too_fast_.push_back(text);
  for (std::size_t i = first_of_adapter; i < nics_.size(); ++i) {
    std::vector<Port>& ports = nics_[i].nic.ports;
    if (nics_[i].nic.name != name) continue;
    // NCCL puts together what its ranks saw, which can list a port twice.
    if (std::ranges::find(ports, port.number, &Port::number) == ports.end()) ports.push_back(port);
    return;
  }
  FoundNic& found = new_nic(name, address, model, kind, place);
  const bool names_port = net.has("port") || net.has("speed") || net.has(kBandwidthKey);
  if (is_ambiguous(speed, kind) && !net.number(kBandwidthKey, kMostGigabytes))
    ambiguous_.push_back(found.nic.name);
  found.dev = dev_of(net);
  if (names_port) found.nic.ports = {port};
  found.nic.system_guid = system_guid(net);
}

HostReader::FoundNic& HostReader::new_nic(std::string name, const std::string& address,
                                          const std::string& model, NicKind kind, const Place& place) {
  const std::string base = name;
  for (int copy = 2; !nic_names_.insert(name).second; ++copy) name = fmt::format("{}#{}", base, copy);
  Nic nic;
  nic.name = std::move(name);
  nic.model = model;
  nic.pci = address;
  nic.kind = kind;
  nics_.push_back({std::move(nic), place, kNoDev});
  check_count(nics_.size(), kMostNics, "NICs");
  return nics_.back();
}

/// A NIC that NCCL fused, `mlx5_0+mlx5_1`, stands beside its parts, and would count their ports twice.
bool HostReader::is_fused(const std::string& name) const {
  std::size_t parts = 0;
  for (std::size_t at = 0; at <= name.size(); ++parts) {
    const std::size_t end = std::min(name.find('+', at), name.size());
    if (!nic_names_.contains(name.substr(at, end - at))) return false;
    at = end + 1;
  }
  return parts > 1;
}

void HostReader::put_in_order() {
  std::erase_if(nics_, [&](const FoundNic& found) { return is_fused(found.nic.name); });
  std::ranges::stable_sort(gpus_, {},
                           [](const FoundGpu& found) { return order_of(found.dev, found.gpu.pci); });
  std::ranges::stable_sort(nics_, {},
                           [](const FoundNic& found) { return order_of(found.dev, found.nic.pci); });
  const auto place = [&](auto& device, DeviceId id, const Place& at) {
    const std::vector<int>& numa = machine_.packages[static_cast<std::size_t>(at.package)].numa_nodes;
    device.numa = numa.empty() ? -1 : numa.front();
    device.host_bridge = at.package;
    machine_.links.push_back({id, at.parent, LinkKind::pcie, at.bandwidth, {}});
  };
  for (FoundGpu& found : gpus_) {
    const DeviceId id{DeviceKind::gpu, static_cast<int>(machine_.gpus.size())};
    found.gpu.name = fmt::format("gpu{}", id.index);
    gpu_at_[found.gpu.pci] = id;
    place(found.gpu, id, found.place);
    machine_.gpus.push_back(found.gpu);
  }
  for (FoundNic& found : nics_) {
    place(found.nic, {DeviceKind::nic, static_cast<int>(machine_.nics.size())}, found.place);
    machine_.nics.push_back(std::move(found.nic));
  }
}

void HostReader::add_gpu_links(const FoundGpu& found, DeviceId gpu) {
  std::size_t elements = 0;
  found.element->each_child([&](const Element& link) {
    check_count(++elements, kMostLinks, "elements below a GPU");
    if (link.name() == "nvlink") add_gpu_link(link, found, gpu, LinkKind::nvlink);
    if (link.name() == "xgmi") add_gpu_link(link, found, gpu, LinkKind::xgmi);
    if (link.name() == "c2c") add_gpu_link(link, found, gpu, LinkKind::c2c);
  });
}

void HostReader::add_gpu_link(const Element& link, const FoundGpu& found, DeviceId gpu, LinkKind kind) {
  const auto count = link.integer("count", 0, kMostLinks);
  if (!count) link.refuse("count", fmt::format("a whole number from 0 to {}", kMostLinks));
  if (*count == 0) return;
  const auto to = target_of(link, found, kind);
  if (!to || *to == gpu) {
    machine_.remarks.push_back(fmt::format("{}: {} {} to {}, which {}, left out", found.gpu.name, *count,
                                           to_text(kind), link.text("target").substr(0, 40),
                                           to ? "is the GPU itself" : "is no GPU of this file"));
    return;
  }
  if (kind == LinkKind::nvlink) nvlinks_[static_cast<std::size_t>(gpu.index)] += static_cast<int>(*count);
  Link& sum = directed_.try_emplace({gpu, *to}, Link{gpu, *to, kind, {}, {}}).first->second;
  sum.bandwidth = sum.bandwidth + bandwidth_of(link, found, kind, static_cast<double>(*count));
  // A single link with a bandwidth of ours may stand for any number: see the writer.
  if (*count > 1 || !link.has(kBandwidthKey)) sum.count += static_cast<int>(*count);
}

std::optional<DeviceId> HostReader::target_of(const Element& link, const FoundGpu& found,
                                              LinkKind kind) const {
  const DeviceId package{DeviceKind::package, found.place.package};
  if (kind == LinkKind::c2c) return package;
  const std::string kind_of_target = link.text("tclass");
  if (kind_of_target.starts_with("0x068001")) return package;
  const auto address = normal_bus_address(link.text("target"));
  const auto gpu = address ? gpu_at_.find(*address) : gpu_at_.end();
  if (gpu != gpu_at_.end()) return gpu->second;
  const bool is_gpu_class = kind_of_target.starts_with("0x03") || kind_of_target.starts_with("0x12");
  // NCCL takes all else for an NVSwitch, and what it cannot see too.
  return is_gpu_class ? std::nullopt : std::optional(DeviceId{DeviceKind::nvswitch, 0});
}

Bandwidth HostReader::bandwidth_of(const Element& link, const FoundGpu& found, LinkKind kind, double count) {
  if (const auto gigabytes = link.number(kBandwidthKey, kMostGigabytes))
    return gigabytes_per_second(*gigabytes);
  if (kind == LinkKind::c2c) {
    const double megabytes = static_cast<double>(link.integer("bw", 0, 10'000'000).value_or(0));
    return {count * megabytes * 1e6};
  }
  const DeviceIdentity identity = identity_of(found.gpu.model);
  const GpuLinkRate rate =
      kind == LinkKind::xgmi ? xgmi_rate(identity.architecture) : nvlink_rate(identity.compute_capability);
  rates_.insert({kind, std::string(rate.source)});
  return count * rate.bandwidth;
}

/// A link between two GPUs is in the file twice, once from each.
void HostReader::link_gpus() {
  for (const auto& [ends, link] : directed_) {
    const auto back = directed_.find({ends.second, ends.first});
    const bool both = back != directed_.end();
    if (both && ends.second < ends.first) continue;
    Link whole = link;
    if (both && (back->second.bandwidth != link.bandwidth || back->second.count != link.count)) {
      // What both ends count is there.
      const Link& other = back->second;
      const bool equal = other.bandwidth == link.bandwidth;
      const bool less =
          equal ? other.count < link.count
                : !link.bandwidth.known() || (other.bandwidth.known() && other.bandwidth < link.bandwidth);
      if (less) std::tie(whole.bandwidth, whole.count) = std::tie(other.bandwidth, other.count);
      machine_.remarks.push_back(fmt::format("{} counts {} to {}, which counts {} back: the lesser is taken",
                                             machine_.device_name(ends.first), speed_or_count(link),
                                             machine_.device_name(ends.second), speed_or_count(other)));
    }
    machine_.links.push_back(whole);
  }
}

void HostReader::note_sources() {
  const std::string source = fmt::format("NCCL topology XML '{}'", file_);
  machine_.citations = {{"CPUs (NUMA nodes), GPUs, NICs and ports, PCIe links, numbers of NVLinks", source},
                        {"PHB is any way through a CPU: host bridges are not told apart", source}};
  for (const auto& [kind, rate] : rates_) {
    const std::string fact =
        fmt::format("bandwidth of one {}", kind == LinkKind::xgmi ? "xGMI link" : "NVLink");
    machine_.citations.push_back({fact, rate.empty()
                                            ? "unknown: the file does not name the GPU's generation, or it "
                                              "is not known here"
                                            : std::string(rate)});
  }
  if (!ambiguous_.empty()) {
    machine_.remarks.push_back(fmt::format(
        "{}: 40 Gb/s are {} of QDR and {} of FDR10 InfiniBand, or {} of Ethernet, and the file does not say "
        "which: the least is taken; polyring probe there tells",
        fmt::join(ambiguous_, ", "),
        to_text(probe::openfabrics_rate("40 Gb/sec (4X QDR)", NicKind::infiniband)),
        to_text(probe::openfabrics_rate("40 Gb/sec (4X FDR10)", NicKind::infiniband)),
        to_text(probe::openfabrics_rate("40 Gb/sec", NicKind::ethernet))));
  }
  if (!too_fast_.empty()) {
    machine_.remarks.push_back(fmt::format(
        "{}: the file's speeds are in Mbit/s, and no port has more than {}: these count as unknown; "
        "correct the file, or let NCCL write it again",
        fmt::join(too_fast_, ", "), kFastestPort));
  }
  if (!shared_.empty()) {
    machine_.remarks.push_back(
        fmt::format("{}: the file has several <gpu> below this one PCI device, as of a GPU in parts; the "
                    "first is read, and the others are left out",
                    fmt::join(shared_, ", ")));
  }
  if (!unnamed_.empty()) {
    machine_.remarks.push_back(fmt::format(
        "{} PCI devices ({} first) are left out: the file has their addresses only, which NCCL "
        "completes on the machine; let it write what it finds there with NCCL_TOPO_DUMP_FILE=FILE",
        unnamed_.size(), unnamed_.front()));
  }
}

void HostReader::note_skeleton() {
  const auto may_have_others = [](const FoundGpu& found) {
    // NCCL writes a <gpu> for each that it has looked at, also for one without NVLinks.
    if (!found.element) return true;
    const DeviceIdentity identity = identity_of(found.gpu.model);
    // A data centre's generation is all that AWS's for p5 says; what NCCL writes itself has vendors.
    return identity.vendor == 0 && identity.architecture.empty() && identity.compute_capability % 10 == 0;
  };
  const bool names_links = std::ranges::any_of(gpus_, [](const FoundGpu& found) {
    return found.element && (found.element->child("nvlink") || found.element->child("c2c"));
  });
  if (machine_.gpus.empty() || names_links || !std::ranges::all_of(gpus_, may_have_others)) return;
  machine_.gpu_links_known = machine_.gpus.size() < 2;
  machine_.remarks.push_back(
      "the file names GPUs by their PCI identity, class or generation only: which NVLinks they have is not "
      "in it");
}

/// NCCL writes all NVLinks and xGMI links that are active.
void HostReader::note_missing_links() {
  if (!machine_.gpu_links_known || !misses_gpu_links(machine_)) return;
  machine_.gpu_links_known = false;
  machine_.remarks.emplace_back(
      "its GPUs are sold with NVLinks or xGMI links only, and the file has none: they were inactive when it "
      "was written, or are left out; nvidia-smi nvlink --status there tells, and whether "
      "nvidia-fabricmanager runs, or rocm-smi --showtopo");
}

Machine HostReader::finish(bool is_one_of_several) {
  std::vector<Link> between;
  const int packages = static_cast<int>(machine_.packages.size());
  for (int a = 0; a < packages; ++a) {
    for (int b = a + 1; b < packages; ++b) {
      between.push_back({{DeviceKind::package, a}, {DeviceKind::package, b}, LinkKind::socket_bus, {}, {}});
    }
  }
  machine_.links.insert(machine_.links.begin(), between.begin(), between.end());
  put_in_order();
  nvlinks_.resize(gpus_.size());
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].element) add_gpu_links(gpus_[i], {DeviceKind::gpu, static_cast<int>(i)});
  }
  const bool switched = std::ranges::any_of(
      directed_, [](const auto& entry) { return entry.first.second.kind == DeviceKind::nvswitch; });
  machine_.nvswitches = switched ? 1 : 0;
  const std::string lost = switched ? lost_nvlinks(nvlinks_) : "";
  if (!lost.empty()) machine_.remarks.push_back(lost);
  link_gpus();
  note_skeleton();
  note_missing_links();
  note_sources();
  for (const auto& remarks :
       {probe::rack_remarks(machine_, is_one_of_several), probe::file_remarks(machine_)})
    machine_.remarks.insert(machine_.remarks.end(), remarks.begin(), remarks.end());
  return std::move(machine_);
}

}  // namespace polyring::nccl_xml
