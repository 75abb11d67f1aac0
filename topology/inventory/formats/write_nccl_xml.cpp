#include "topology/inventory/formats/write_nccl_xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "topology/assumed_rates.hpp"
#include "topology/device_identity.hpp"
#include "topology/gpu_links.hpp"
#include "topology/inventory/formats/nccl_device.hpp"
#include "topology/inventory/formats/nccl_xml_keys.hpp"
#include "topology/inventory/inventory.hpp"
#include "topology/inventory/probe/sysfs.hpp"
#include "topology/shared_links.hpp"

namespace polyring {
namespace {

constexpr const char* kNvidiaGpu = "0x030200";
constexpr const char* kAmdGpu = "0x038000";
constexpr const char* kBridge = "0x060400";
constexpr const char* kNvswitch = "0x068000";
constexpr const char* kPowerCpu = "0x068001";

/// Presets round their bandwidths to three digits.
bool about_equal(Bandwidth a, Bandwidth b) { return std::abs(a.value - b.value) <= 5e-3 * b.value; }

/// Attributes in the order in which they are added.
class Attributes {
 public:
  template <typename Value>
  Attributes& add(const char* key, const Value& value) {
    text_ += fmt::format(" {}=\"{}\"", key, clean(fmt::format("{}", value)));
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  /// Without what ends an attribute, of XML or of NCCL's parser, and no longer than the latter takes.
  static std::string clean(const std::string& value) {
    std::string cleaned = value.substr(0, 200);
    for (char& c : cleaned) {
      if (std::iscntrl(static_cast<unsigned char>(c)) != 0 ||
          std::string_view("\"'<>&").find(c) != std::string::npos) {
        c = '_';
      }
    }
    return cleaned;
  }

  std::string text_;
};

/// Indented elements.
class Elements {
 public:
  void open(const char* name, const Attributes& attributes = {}) {
    line("<", name, attributes, ">");
    ++depth_;
  }
  void close(const char* name) {
    --depth_;
    text_ += fmt::format("{:{}}</{}>\n", "", 2 * depth_, name);
  }
  void single(const char* name, const Attributes& attributes = {}) { line("<", name, attributes, "/>"); }
  /// XML has no "--" in a comment.
  void comment(std::string sentence) {
    for (auto at = sentence.find("--"); at != std::string::npos; at = sentence.find("--", at))
      sentence.replace(at, 2, "- -");
    text_ += fmt::format("{:{}}<!-- {} -->\n", "", 2 * depth_, sentence);
  }
  std::string take() { return std::move(text_); }

 private:
  void line(const char* begin, const char* name, const Attributes& attributes, const char* end) {
    text_ += fmt::format("{:{}}{}{}{}{}\n", "", 2 * depth_, begin, name, attributes.text(), end);
  }

  std::string text_;
  int depth_ = 0;
};

/// The generation and the lanes that have this bandwidth, 16 lanes first; without any the nearest, and the
/// number.
void add_pcie(Attributes& attributes, Bandwidth bandwidth) {
  if (!bandwidth.known()) {
    attributes.add("link_speed", "").add("link_width", 0);
    return;
  }
  constexpr std::array kSpeeds{"8.0 GT/s PCIe",  "16.0 GT/s PCIe", "32.0 GT/s PCIe",
                               "64.0 GT/s PCIe", "5.0 GT/s PCIe",  "2.5 GT/s PCIe"};
  constexpr double kCloser =
      5e-3;  // fewer lanes of a faster generation come out the same, apart from rounding
  const char* nearest = kSpeeds.front();
  int lanes = 16;
  double error = HUGE_VAL;
  for (const int width : {16, 8, 4, 2, 1}) {
    for (const char* speed : kSpeeds) {
      const double off = std::abs(std::log(probe::pcie_bandwidth(speed, width).value / bandwidth.value));
      if (off < error - kCloser) std::tie(nearest, lanes, error) = std::tuple(speed, width, off);
    }
  }
  attributes.add("link_speed", nearest).add("link_width", lanes);
  if (!about_equal(bandwidth, probe::pcie_bandwidth(nearest, lanes))) {
    attributes.add(nccl_xml::kBandwidthKey, rounded(bandwidth.gigabytes_per_second()));
  }
}

/// NCCL's rate, in Mb/s, without InfiniBand's coding.
void add_port(Attributes& attributes, const Port& port, NicKind kind) {
  if (port.bandwidth.known()) {
    std::int64_t speed = std::llround(port.bandwidth.value * 8 / 1e6);
    for (const std::int64_t rate :
         {10'000, 20'000, 25'000, 40'000, 50'000, 56'000, 100'000, 200'000, 400'000, 800'000}) {
      if (about_equal(port.bandwidth, nccl_xml::port_bandwidth(rate, kind))) speed = rate;
    }
    attributes.add("speed", speed);
    if (!about_equal(port.bandwidth, nccl_xml::port_bandwidth(speed, kind))) {
      attributes.add(nccl_xml::kBandwidthKey, rounded(port.bandwidth.gigabytes_per_second()));
    }
  }
  attributes.add("port", port.number);
}

/// A device below a package or switch.
struct Child {
  DeviceId device;
  Bandwidth bandwidth;
};

/// Writes one machine.
class Writer {
 public:
  explicit Writer(const Machine& machine) : machine_(machine) {
    for (const Gpu& gpu : machine.gpus) identities_.push_back(identity_of(gpu.model));
    amd_ = std::ranges::any_of(identities_,
                               [](const DeviceIdentity& gpu) { return !gpu.architecture.empty(); }) ||
           std::ranges::any_of(machine.links, [](const Link& link) { return link.kind == LinkKind::xgmi; });
    place_devices();
    give_addresses();
  }

  /// For so many hosts that are equal.
  std::string write(int hosts) {
    Attributes attributes;
    attributes.add("version", amd_ ? 2 : 1).add("name", machine_.name);
    out_.open("system", attributes);
    if (hosts > 1)
      out_.comment(
          fmt::format("For each of {} hosts that are equal, with the bus addresses of the first", hosts));
    if (has_assumed_rates(machine_)) out_.comment("Some speeds are assumed: polyring probe marks them");
    if (made_up_) out_.comment("Bus addresses in domains from fff0 are made up: give those of your machine");
    for (int package = 0; package < static_cast<int>(machine_.packages.size()); ++package)
      write_package(package);
    out_.close("system");
    return out_.take();
  }

 private:
  /// Over PCIe from the packages down; GPUs that hang on NVLink alone then go below the package that it leads
  /// to.
  void place_devices() {
    for (int i = 0; i < static_cast<int>(machine_.packages.size()); ++i)
      placed_.insert({DeviceKind::package, i});
    for (bool changed = true; changed;) {
      changed = false;
      for (const Link& link : machine_.links) {
        if (link.kind != LinkKind::pcie) continue;
        changed |= place(link.from, link.to, link.bandwidth) || place(link.to, link.from, link.bandwidth);
      }
    }
    for (const Link& link : machine_.links) {
      if (!place(link.from, link.to, {})) place(link.to, link.from, {});
    }
    for (int i = 0; i < static_cast<int>(machine_.gpus.size()); ++i) {
      place({DeviceKind::gpu, i}, {DeviceKind::package, 0}, {});
    }
  }

  bool place(DeviceId device, DeviceId parent, Bandwidth bandwidth) {
    const bool is_parent = parent.kind == DeviceKind::package || parent.kind == DeviceKind::pci_switch;
    if (!is_parent || device.kind == DeviceKind::nvswitch || !placed_.contains(parent)) return false;
    if (!placed_.insert(device).second) return false;
    children_[parent].push_back({device, bandwidth});
    return true;
  }

  const std::string& stated_address(DeviceId id) const {
    const auto index = static_cast<std::size_t>(id.index);
    if (id.kind == DeviceKind::gpu) return machine_.gpus[index].pci;
    return id.kind == DeviceKind::nic ? machine_.nics[index].pci : machine_.switches[index].pci;
  }

  void give_addresses() {
    int made_up = 0;
    for (const auto& [parent, children] : children_) {
      for (const Child& child : children) {
        addresses_[child.device] = stated_address(child.device);
        // A network interface that is no PCI device needs none.
        const bool virtual_nic = child.device.kind == DeviceKind::nic && parent.kind == DeviceKind::package &&
                                 !child.bandwidth.known();
        if (!addresses_[child.device].empty() || virtual_nic) continue;
        addresses_[child.device] = fmt::format("{:04x}:{:02x}:00.0", 0xfff0 + made_up / 256, made_up % 256);
        ++made_up;
      }
    }
    made_up_ = made_up > 0;
  }

  /// The NUMA node of the first device at or below this one; the package's own when none says it.
  int numa_of(DeviceId id, int otherwise) const {
    const auto index = static_cast<std::size_t>(id.index);
    if (id.kind == DeviceKind::gpu && machine_.gpus[index].numa >= 0) return machine_.gpus[index].numa;
    if (id.kind == DeviceKind::nic && machine_.nics[index].numa >= 0) return machine_.nics[index].numa;
    const auto below = children_.find(id);
    if (below != children_.end() && !below->second.empty())
      return numa_of(below->second.front().device, otherwise);
    return otherwise;
  }

  /// NCCL's CPUs are NUMA nodes, so that a package is one or several of them.
  void write_package(int index) {
    const Package& package = machine_.packages[static_cast<std::size_t>(index)];
    const int first = package.numa_nodes.empty() ? -1 : package.numa_nodes.front();
    std::map<int, std::vector<Child>> by_numa;
    const auto below = children_.find({DeviceKind::package, index});
    if (below != children_.end()) {
      for (const Child& child : below->second) by_numa[numa_of(child.device, first)].push_back(child);
    }
    if (by_numa.empty()) by_numa[first] = {};
    for (const auto& [numa, children] : by_numa) {
      if (children.empty() && !is_enough(package.cpu)) continue;
      const Attributes attributes = cpu_attributes(package.cpu, cpu_number(numa));
      if (children.empty()) {
        out_.single("cpu", attributes);
        continue;
      }
      out_.open("cpu", attributes);
      for (const Child& child : children) write_device(child, index);
      out_.close("cpu");
    }
  }

  /// Two of one number would be one CPU to NCCL.
  int cpu_number(int numa) {
    if (cpu_numbers_.insert(numa).second) return numa;
    int number = nccl_xml::kMadeUpCpu;
    while (!cpu_numbers_.insert(number).second) ++number;
    out_.comment(fmt::format(
        "The number {} is made up: {}", number,
        numa < 0 ? "nothing tells this CPU's NUMA node" : fmt::format("another CPU has NUMA node {}", numa)));
    return number;
  }

  static Attributes cpu_attributes(const CpuIdentity& cpu, int numa) {
    Attributes attributes;
    attributes.add("numaid", numa);
    if (!cpu.architecture.empty()) attributes.add("arch", cpu.architecture);
    if (!cpu.vendor.empty()) attributes.add("vendor", cpu.vendor);
    if (cpu.family >= 0) attributes.add("familyid", cpu.family);
    if (cpu.model >= 0) attributes.add("modelid", cpu.model);
    return attributes;
  }

  /// NCCL completes the CPUs above its own GPUs and NICs by what it sees, and refuses a file where one of the
  /// others lacks what it is known by (ncclTopoAddCpu() in src/graph/topo.cc; seen with 2.28.9).
  static bool is_enough(const CpuIdentity& cpu) {
    if (cpu.architecture != "x86_64") return !cpu.architecture.empty();
    return cpu.vendor == "GenuineIntel" ? cpu.family >= 0 && cpu.model >= 0 : !cpu.vendor.empty();
  }

  void write_device(const Child& child, int package) {
    if (!package_known(child.device)) {
      out_.comment(fmt::format("Nothing tells which CPU {} is near; it need not be this one",
                               machine_.device_name(child.device).substr(0, 100)));
    }
    if (child.device.kind == DeviceKind::gpu) return write_gpu(child, package);
    if (child.device.kind == DeviceKind::nic) return write_nic(child);
    const auto below = children_.find(child.device);
    if (below == children_.end()) return;
    out_.open("pci", pci_attributes(child, kBridge, {}));
    for (const Child& next : below->second) write_device(next, package);
    out_.close("pci");
  }

  bool package_known(DeviceId device) const {
    if (device.kind == DeviceKind::gpu)
      return machine_.gpus[static_cast<std::size_t>(device.index)].package_known;
    return device.kind != DeviceKind::nic || nic_at(device.index).package_known;
  }

  Attributes pci_attributes(const Child& child, const char* pci_class, const DeviceIdentity& identity) const {
    Attributes attributes;
    attributes.add("busid", addresses_.at(child.device)).add("class", pci_class);
    if (identity.vendor != 0) {
      attributes.add("vendor", fmt::format("0x{:04x}", identity.vendor));
      attributes.add("device", fmt::format("0x{:04x}", identity.device));
    }
    add_pcie(attributes, child.bandwidth);
    return attributes;
  }

  void write_gpu(const Child& child, int package) {
    const DeviceIdentity& identity = identities_[static_cast<std::size_t>(child.device.index)];
    std::vector<std::pair<DeviceId, const Link*>> links;
    for (const Link& link : machine_.links) {
      const bool between_gpus = link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi;
      if (!between_gpus && link.kind != LinkKind::c2c) continue;
      if (link.from == child.device) links.emplace_back(link.to, &link);
      if (link.to == child.device) links.emplace_back(link.from, &link);
    }
    // A reader would take a link of unknown bandwidth for one of this generation's, where it knows that.
    const bool keeps = std::ranges::all_of(links, [&](const auto& link) {
      return link.second->bandwidth.known() || !rate_of(*link.second, identity).known();
    });
    Attributes gpu;
    gpu.add("dev", child.device.index);
    if (identity.compute_capability != 0 && keeps) gpu.add("sm", identity.compute_capability);
    if (!identity.architecture.empty() && keeps) gpu.add("gcn", identity.architecture);
    gpu.add("rank", child.device.index);
    out_.open("pci", pci_attributes(child, gpu_class(), identity));
    if (links.empty()) {
      out_.single("gpu", gpu);
    } else {
      out_.open("gpu", gpu);
      for (const auto& [to, link] : links) write_gpu_link(*link, to, identity, package);
      out_.close("gpu");
    }
    out_.close("pci");
  }

  const char* gpu_class() const { return amd_ ? kAmdGpu : kNvidiaGpu; }

  /// Of one of the links that are bonded in it.
  static Bandwidth rate_of(const Link& link, const DeviceIdentity& identity) {
    if (link.kind == LinkKind::c2c) return {};
    return (link.kind == LinkKind::xgmi ? xgmi_rate(identity.architecture)
                                        : nvlink_rate(identity.compute_capability))
        .bandwidth;
  }

  /// 0 where nothing tells.
  static std::int64_t bonded_in(const Link& link, Bandwidth rate) {
    if (link.count > 0 || !link.bandwidth.known()) return link.count;
    return rate.known() ? std::max<std::int64_t>(1, std::llround(link.bandwidth.value / rate.value)) : 0;
  }

  void write_gpu_link(const Link& link, DeviceId to, const DeviceIdentity& identity, int package) {
    if (link.kind == LinkKind::c2c) {
      if (!link.bandwidth.known()) return;
      const int count = std::max(link.count, 1);
      out_.single(
          "c2c",
          Attributes().add("bw", std::llround(link.bandwidth.value / 1e6 / count)).add("count", count));
      return;
    }
    if (to.kind == DeviceKind::package && to.index != package) {
      out_.comment(fmt::format("An NVLink to {}, another CPU than the one above, is left out",
                               machine_.device_name(to)));
      return;
    }
    const Bandwidth rate = rate_of(link, identity);
    std::int64_t count = bonded_in(link, rate);
    const std::string what =
        fmt::format("{} to {}", link.kind == LinkKind::xgmi ? "xGMI" : "NVLink", machine_.device_name(to));
    if (count == 0 && !link.bandwidth.known()) {
      out_.comment(
          fmt::format("{} is left out: neither how many links nor how fast they are is known", what));
      return;
    }
    if (count == 0) {
      out_.comment(fmt::format("{}: the count of 1 stands for an unknown number of links", what));
      count = 1;
    }
    Attributes attributes;
    attributes.add("target", target(to)).add("count", count).add("tclass", target_class(to));
    if (link.bandwidth.known() && !about_equal(link.bandwidth, static_cast<double>(count) * rate)) {
      attributes.add(nccl_xml::kBandwidthKey, rounded(link.bandwidth.gigabytes_per_second()));
    }
    out_.single(link.kind == LinkKind::xgmi ? "xgmi" : "nvlink", attributes);
  }

  /// For what is no GPU NCCL looks at the class alone; this is its own word for an NVSwitch that it cannot
  /// see.
  std::string target(DeviceId to) const {
    return to.kind == DeviceKind::gpu ? addresses_.at(to) : std::string("fffffff:ffff:ff");
  }

  const char* target_class(DeviceId to) const {
    if (to.kind == DeviceKind::gpu) return gpu_class();
    return to.kind == DeviceKind::package ? kPowerCpu : kNvswitch;
  }

  /// The NICs of one kind that are functions of one device, this one among them.
  std::vector<int> functions_of(DeviceId device) const {
    const auto link = std::ranges::find_if(
        machine_.links, [&](const Link& of) { return of.kind == LinkKind::pcie && of.from == device; });
    if (link == machine_.links.end()) return {device.index};
    std::vector<int> functions = nics_of(machine_, *link);
    std::erase_if(functions, [&](int nic) { return nic_at(nic).kind != nic_at(device.index).kind; });
    return functions;
  }

  const Nic& nic_at(int index) const { return machine_.nics[static_cast<std::size_t>(index)]; }

  /// To NCCL the functions of a device are one device, which has all their ports.
  void write_nic(const Child& child) {
    const std::vector<int> functions = functions_of(child.device);
    if (functions.front() != child.device.index) return;
    const Nic& nic = nic_at(child.device.index);
    const auto attachments = std::ranges::count_if(machine_.links, [&](const Link& link) {
      return link.kind == LinkKind::pcie && (link.from == child.device || link.to == child.device);
    });
    if (attachments > 1) {
      out_.comment(
          fmt::format("{} hangs under {} places; this is one of them", nic.name.substr(0, 100), attachments));
    }
    const bool is_pci = !addresses_.at(child.device).empty();
    const char* pci_class = nic.kind == NicKind::infiniband ? "0x020700"
                            : nic.kind == NicKind::ethernet ? "0x020000"
                                                            : "0x028000";
    const Attributes pci = pci_attributes(child, pci_class, identity_of(nic.model));
    const auto is_named = [&](int function) {
      return nic_at(function).up() || nic_at(function).ports.empty();
    };
    if (std::ranges::none_of(functions, is_named)) {
      // Nothing to name; NCCL adds the ports that it finds.
      if (is_pci) out_.single("pci", pci);
      return;
    }
    if (is_pci) out_.open("pci", pci);
    out_.open("nic");
    for (const int function : functions) {
      const Nic& named = nic_at(function);
      if (named.ports.empty()) write_net(named, nullptr, function);
      for (const Port& port : named.ports) {
        if (port.up) write_net(named, &port, function);
      }
    }
    out_.close("nic");
    if (is_pci) out_.close("pci");
  }

  /// Without a port, none of the NIC's is known.
  void write_net(const Nic& nic, const Port* port, int dev) {
    Attributes net;
    net.add("name", nic.name).add("dev", dev);
    if (port != nullptr) add_port(net, *port, nic.kind);
    const std::uint64_t guid = std::strtoull(nic.system_guid.c_str(), nullptr, 16);
    if (guid != 0) net.add("guid", fmt::format("0x{:x}", nccl_xml::swapped(guid)));
    out_.single("net", net);
  }

  const Machine& machine_;
  Elements out_;
  std::vector<DeviceIdentity> identities_;  // of the GPUs
  bool amd_ = false;
  std::set<DeviceId> placed_;
  std::map<DeviceId, std::vector<Child>> children_;
  std::map<DeviceId, std::string> addresses_;
  bool made_up_ = false;
  std::set<int> cpu_numbers_;  // that are written
};

}  // namespace

std::string write_nccl_xml(const Cluster& cluster) {
  const Cluster kinds = by_kind(cluster);
  if (kinds.groups.size() != 1) {
    usage_error(
        "the hosts of '{}' are of {} kinds, but a file for NCCL_TOPO_FILE describes one host; probe one host "
        "of each kind by itself",
        cluster.name, kinds.groups.size());
  }
  const Machine& machine = kinds.groups.front().machine;
  if (machine.gpus.empty() && machine.nics.empty()) {
    usage_error(
        "'{}' has neither GPUs nor NICs, and a file for NCCL_TOPO_FILE lists nothing else; probe a host that "
        "has some",
        machine.name);
  }
  return Writer(kinds.groups.front().machine).write(kinds.groups.front().count);
}

}  // namespace polyring
