#include "topology/inventory/probe/sysfs_machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "topology/inventory/probe/files.hpp"
#include "topology/inventory/probe/limits.hpp"
#include "topology/inventory/probe/pci_ids.hpp"
#include "topology/inventory/probe/pci_links.hpp"

namespace polyring::probe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCpus = "devices/system/cpu";
constexpr const char* kNodes = "devices/system/node";

/// Beside PCI's, what a copy should have.
constexpr std::array kCopied{kCpus, kNodes, "class/infiniband", "class/net"};

constexpr long kMostNumbered = 1 << 20;  // more than any machine has of anything

/// The number of `cpu12`, nothing for `cpufreq`.
std::optional<int> numbered(const fs::path& entry, std::string_view prefix) {
  const std::string name = entry.filename().string();
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto number = whole_number(name.substr(prefix.size()));
  if (!number || *number < 0 || *number > kMostNumbered) return std::nullopt;
  return static_cast<int>(*number);
}

/// `Node 0 MemTotal:  65709304 kB`
Bytes node_memory(const std::string& meminfo) {
  std::istringstream lines(meminfo);
  for (std::string line; std::getline(lines, line);) {
    const auto label = line.find("MemTotal:");
    if (label == std::string::npos) continue;
    const auto digits = line.find_first_of("0123456789", label);
    if (digits == std::string::npos) return {};
    return {static_cast<std::uint64_t>(whole_number(line.substr(digits)).value_or(0)) << 10};
  }
  return {};
}

class Builder {
 public:
  Builder(const Sysfs& sysfs, Machine& machine) : sysfs_(sysfs), machine_(machine), links_(machine) {}

  void build() {
    add_packages();
    check_counts();  // before there is a bus between every two
    add_memory();
    add_socket_buses(machine_);
    for (const auto& [name, pci] : sysfs_.openfabrics_devices()) openfabrics_[pci].push_back(name);
    for (const Interface& interface : sysfs_.interfaces()) interfaces_[interface.pci].push_back(interface);
    for (const PciDevice& device : sysfs_.pci_devices()) add_device(device);
    add_devices_without_pci();
    check_counts();
  }

 private:
  void check_counts() const {
    probe::check_counts(machine_, sysfs_.root().string(), "copy one host's with scripts/record_sysfs");
  }

  void add_packages() {
    std::map<int, std::set<std::pair<long, long>>> cores;  // die and core, by package
    std::map<int, int> package_of_cpu;
    for (const fs::path& entry : sysfs_.entries(kCpus)) {
      const auto cpu = numbered(entry, "cpu");
      const auto number = [&](const char* name) {
        return whole_number(sysfs_.line(entry / "topology" / name));
      };
      const auto package = number("physical_package_id");
      if (!cpu || !package || *package < -kMostNumbered || *package > kMostNumbered) continue;
      package_of_cpu[*cpu] = static_cast<int>(*package);
      cores[static_cast<int>(*package)].insert(
          {number("die_id").value_or(0), number("core_id").value_or(*cpu)});
    }
    std::map<int, int> index_of;
    for (const auto& [id, its_cores] : cores) {
      index_of[id] = static_cast<int>(machine_.packages.size());
      machine_.packages.push_back({fmt::format("package{}", machine_.packages.size()),
                                   {},
                                   static_cast<int>(its_cores.size()),
                                   {},
                                   {},
                                   {}});
    }
    if (machine_.packages.empty()) machine_.packages.push_back({"package0", {}, 0, {}, {}, {}});
    for (const auto& [cpu, id] : package_of_cpu) package_of_cpu_[cpu] = index_of[id];
  }

  void add_memory() {
    for (const fs::path& entry : sysfs_.entries(kNodes)) {
      const auto node = numbered(entry, "node");
      const std::vector<int> cpus = number_list(sysfs_.line(entry / "cpulist"));
      // Memory of a GPU can be a NUMA node too, one without processors.
      if (!node || cpus.empty()) continue;
      const std::set<int> packages = packages_of(cpus);
      for (const int package : packages)
        machine_.packages[static_cast<std::size_t>(package)].numa_nodes.push_back(*node);
      package_of_node_[*node] = only(packages);
      // How the memory of a node that spans packages is divided nothing tells.
      if (packages.size() != 1) continue;
      Package& home = machine_.packages[static_cast<std::size_t>(*packages.begin())];
      home.memory = home.memory + node_memory(sysfs_.text(entry / "meminfo"));
    }
    for (Package& package : machine_.packages) std::ranges::sort(package.numa_nodes);
  }

  /// The packages that have these processors; of a copy that does not say it, the only one there is.
  std::set<int> packages_of(const std::vector<int>& cpus) const {
    std::set<int> packages;
    for (const int cpu : cpus) {
      if (const auto found = package_of_cpu_.find(cpu); found != package_of_cpu_.end())
        packages.insert(found->second);
    }
    if (packages.empty() && machine_.packages.size() == 1) packages.insert(0);
    return packages;
  }

  static std::optional<int> only(const std::set<int>& packages) {
    return packages.size() == 1 ? std::optional(*packages.begin()) : std::nullopt;
  }

  struct Locality {
    int numa = -1;
    std::optional<int> package{};  // nothing where several may be it
  };

  Locality locality(const std::string& pci) const {
    const fs::path folder = sysfs_.pci_folder(pci);
    const int numa = static_cast<int>(whole_number(sysfs_.line(folder / "numa_node")).value_or(-1));
    if (const auto found = package_of_node_.find(numa); found != package_of_node_.end())
      return {numa, found->second};
    // Machines of one NUMA node say -1.
    if (package_of_node_.size() == 1)
      return {package_of_node_.begin()->first, package_of_node_.begin()->second};
    return {-1, only(packages_of(number_list(sysfs_.line(folder / "local_cpulist"))))};
  }

  int host_bridge(const PciDevice& device) {
    if (device.host_bridge.empty()) return -1;
    return host_bridges_.try_emplace(device.host_bridge, static_cast<int>(host_bridges_.size()))
        .first->second;
  }

  void attach(const PciDevice& device, DeviceId id) {
    const auto end = [this](const std::string& pci) {
      return PciEnd{pci, pci, sysfs_.pcie_bandwidth(pci), sysfs_.pci_identity(pci)};
    };
    std::vector<PciEnd> bridges;
    for (const std::string& bridge : device.bridges) bridges.push_back(end(bridge));
    links_.attach(id, locality(device.address).package, bridges, {end(device.address)});
  }

  /// AMD's driver names its GPUs; for others sysfs has numbers only.
  std::string model_of(const PciDevice& device) const {
    const std::string name = sysfs_.line(sysfs_.pci_folder(device.address) / "product_name");
    return name.empty() ? fmt::format("device {:04x}:{:04x}", device.identity.vendor, device.identity.device)
                        : name;
  }

  void add_device(const PciDevice& device) {
    if (sysfs_.is_virtual_function(device.address)) return;
    if (is_gpu(device.class_id, device.identity.vendor, device.identity.device)) {
      add_gpu(device);
    } else if (is_network_controller(device.class_id) || openfabrics_.contains(device.address) ||
               interfaces_.contains(device.address)) {
      add_nic(device);
    }
  }

  void add_gpu(const PciDevice& device) {
    const DeviceId id{DeviceKind::gpu, static_cast<int>(machine_.gpus.size())};
    machine_.gpus.push_back({fmt::format("gpu{}", id.index),
                             model_of(device),
                             device.address,
                             locality(device.address).numa,
                             host_bridge(device),
                             sysfs_.gpu_memory(device.address),
                             {}});
    attach(device, id);
  }

  void add_nic(const PciDevice& device) {
    const auto openfabrics = openfabrics_.find(device.address);
    const std::string name = openfabrics == openfabrics_.end() ? "" : openfabrics->second.front();
    const DeviceId id{DeviceKind::nic, static_cast<int>(machine_.nics.size())};
    const std::string guid = name.empty() ? "" : sysfs_.openfabrics_system_guid(name);
    // Virtual functions of an adapter's ports are all function 0 of a slot of their own.
    if (!guid.empty() && !is_adapters_virtual_function(device.identity.vendor, device.identity.device)) {
      const auto [port, is_new] = adapter_ports_.try_emplace({guid, device.address.back()}, id);
      if (!is_new) return add_attachment(device, port->second);
    }
    const auto found = interfaces_.find(device.address);
    const std::vector<Interface> interfaces =
        found == interfaces_.end() ? std::vector<Interface>{} : found->second;
    Nic nic = name.empty() ? interface_nic(interfaces) : openfabrics_nic(name);
    if (nic.name.empty()) nic.name = "nic@" + device.address;
    nic.kind = link_layer(name, device.class_id, interfaces);
    if (nic.model.empty()) nic.model = model_of(device);
    nic.pci = device.address;
    nic.numa = locality(device.address).numa;
    nic.host_bridge = host_bridge(device);
    machine_.nics.push_back(std::move(nic));
    attach(device, id);
  }

  /// The same port of the same adapter, seen from another socket.
  void add_attachment(const PciDevice& device, DeviceId id) {
    Nic& nic = machine_.nics[static_cast<std::size_t>(id.index)];
    nic.numa = -1;
    nic.host_bridge = -1;
    attach(device, id);
  }

  /// As its ports say; else its PCI class; else its interfaces, since a class can mean either.
  NicKind link_layer(const std::string& openfabrics, unsigned class_id,
                     const std::vector<Interface>& interfaces) const {
    std::optional<NicKind> kind;
    if (!openfabrics.empty()) kind = sysfs_.openfabrics_kind(openfabrics);
    if (!kind) kind = link_layer_of_class(class_id);
    for (const Interface& interface : interfaces) {
      if (!kind) kind = interface.link_layer;
    }
    return kind.value_or(NicKind::unknown);
  }

  Nic openfabrics_nic(const std::string& name) const {
    Nic nic;
    nic.name = name;
    nic.model = sysfs_.line(fs::path("class/infiniband") / name / "hca_type");
    nic.ports = sysfs_.openfabrics_ports(name);
    nic.system_guid = sysfs_.openfabrics_system_guid(name);
    return nic;
  }

  static Nic interface_nic(const std::vector<Interface>& interfaces) {
    Nic nic;
    for (const Interface& interface : interfaces) {
      if (nic.name.empty()) nic.name = interface.name;
      nic.ports.push_back(interface.port);
      nic.ports.back().number = static_cast<int>(nic.ports.size());
    }
    return nic;
  }

  /// Devices that hang on no PCI, or whose link to it was not copied.
  void add_devices_without_pci() {
    constexpr unsigned kNoClass = 0;
    std::vector<Nic> nics;
    for (const std::string& name : openfabrics_[""]) {
      nics.push_back(openfabrics_nic(name));
      nics.back().kind = link_layer(name, kNoClass, {});
    }
    for (const Interface& interface : interfaces_[""]) {
      nics.push_back(interface_nic({interface}));
      nics.back().kind = link_layer("", kNoClass, {interface});
    }
    for (Nic& nic : nics) {
      const DeviceId id{DeviceKind::nic, static_cast<int>(machine_.nics.size())};
      machine_.nics.push_back(std::move(nic));
      links_.attach(id, std::nullopt, {}, {});
    }
  }

  const Sysfs& sysfs_;
  Machine& machine_;
  PciLinks links_;
  std::map<int, int> package_of_cpu_;
  std::map<int, std::optional<int>> package_of_node_;
  std::map<std::string, int> host_bridges_;
  std::map<std::string, std::vector<std::string>> openfabrics_;     // names by PCI address
  std::map<std::string, std::vector<Interface>> interfaces_;        // the same of network interfaces
  std::map<std::pair<std::string, char>, DeviceId> adapter_ports_;  // by GUID and function
};

}  // namespace

Machine machine_from(const Sysfs& sysfs) {
  Machine machine;
  const std::string product = sysfs.line("class/dmi/id/product_name");
  const std::string vendor = sysfs.line("class/dmi/id/sys_vendor");
  machine.model = vendor.empty() ? product : fmt::format("{} {}", vendor, product);
  Builder(sysfs, machine).build();
  return machine;
}

bool was_copied(const Sysfs& sysfs) {
  return !sysfs.pci_devices().empty() ||
         std::ranges::any_of(kCopied, [&](const char* folder) { return !sysfs.entries(folder).empty(); });
}

std::string what_was_copied(const Sysfs& sysfs) {
  std::vector<std::string> there;
  std::vector<std::string> missing;
  const auto look = [&](const char* what, bool found) { (found ? there : missing).emplace_back(what); };
  const auto has = [&](const char* folder) { return !sysfs.entries(folder).empty(); };
  look("processors (devices/system/cpu)", has(kCpus));
  look("memory (devices/system/node)", has(kNodes));
  look("PCI (bus/pci, devices/pci*)", !sysfs.pci_devices().empty());
  look("OpenFabrics (class/infiniband)", has("class/infiniband"));
  look("network (class/net)", has("class/net"));
  std::string out = there.empty() ? "nothing" : fmt::format("{}", fmt::join(there, ", "));
  if (!missing.empty()) out += fmt::format("; not recorded: {}", fmt::join(missing, ", "));
  return out;
}

}  // namespace polyring::probe
