// Machine: what one host is made of (packages, PCIe switches, GPUs, NICs) and the links that connect the
// parts.
//
// A Machine is plain data. Probes and presets make one, validate() says whether it hangs together, and
// everything else (paths, plans, prices, reports) only reads it.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace polyring {

enum class DeviceKind { package, pci_switch, nvswitch, gpu, nic };

/// Names one device of a machine: the index-th of its kind.
struct DeviceId {
  DeviceKind kind = DeviceKind::package;
  int index = 0;
  auto operator<=>(const DeviceId&) const = default;
};

/// What NCCL knows a CPU by, in its words; empty or −1 where unknown.
struct CpuIdentity {
  std::string architecture;  // x86_64, arm64 or ppc64
  std::string vendor;        // of x86_64, by CPUID: GenuineIntel
  int family = -1;
  int model = -1;
};

struct Package {
  std::string name;  // "package0"
  std::string model;
  int cores = 0;
  Bytes memory;
  Bandwidth memory_bandwidth;   // read + write together; 0 when unknown
  std::vector<int> numa_nodes;  // OS indices
  CpuIdentity cpu{};
};

struct PciSwitch {
  std::string name;  // "switch0"
  std::string pci;   // bus address of the upstream bridge
};

struct Gpu {
  std::string name;      // "gpu0"
  std::string model;     // "Tesla P100-SXM2-16GB"
  std::string pci;       // "0002:01:00.0", empty when unknown
  int numa = -1;         // OS index, -1 when unknown
  int host_bridge = -1;  // which PCI host bridge of the machine it hangs under, -1 when unknown
  Bytes memory;
  Bandwidth memory_bandwidth;  // 0 when unknown
  /// False where nothing tells which of several packages it is near; its links are then to the first.
  bool package_known = true;
};

struct Port {
  int number = 1;
  bool up = false;
  Bandwidth bandwidth;   // per direction; 0 when unknown
  std::string guid{};    // InfiniBand's name of it, "0x506b4b0300c0ffee"; empty when unknown
  bool assumed = false;  // the bandwidth: no source tells it, see assumed_rates.hpp
};

enum class NicKind { infiniband, ethernet, unknown };

struct Nic {
  std::string name;  // "mlx5_0"
  std::string model;
  std::string pci;
  int numa = -1;
  int host_bridge = -1;
  NicKind kind = NicKind::ethernet;
  std::vector<Port> ports;
  std::string system_guid{};  // shared by all functions of one adapter; empty when unknown
  bool package_known = true;  // as of a GPU

  bool up() const;
  /// The sum over the ports that are up, per direction; 0 when none is up or a speed is unknown.
  Bandwidth bandwidth() const;
};

enum class LinkKind {
  nvlink,
  xgmi,
  c2c,  // NVLink-C2C: between a GPU and the CPU beside it
  pcie,
  socket_bus,  // between packages: X-bus, QPI, UPI, Infinity Fabric
  memory,      // between a process and the package whose memory it uses: see processes.hpp
};

/// A full-duplex link between two devices of one machine.
struct Link {
  DeviceId from;
  DeviceId to;
  LinkKind kind = LinkKind::pcie;
  Bandwidth bandwidth;   // in each direction, all parallel lanes and bonded links together; 0 when unknown
  Seconds latency;       // one way
  int count = 0;         // of the links that are bonded in it; 0 where the source does not tell
  bool assumed = false;  // as of a Port
};

/// Where a number of this machine was read.
struct Citation {
  std::string fact;
  std::string source;
};

/// One of the places where a live probe looks.
struct ProbeSource {
  std::string name;    // "hwloc", "sysfs", "NVML"
  bool read = false;   // false: it is absent, or may not be read
  std::string detail;  // what was read there, or why nothing was, and what would help
};

/// A remark on a link or port that does less than it and its like could.
struct LinkFault {
  std::string device;  // "gpu2"
  std::string remark;
  bool is_port = false;  // a NIC's port is not up
  bool operator==(const LinkFault&) const = default;
};

struct Machine {
  std::string name;   // host name or preset name
  std::string model;  // "IBM Power S822LC (8335-GTB)"
  std::vector<Package> packages;
  std::vector<PciSwitch> switches;
  int nvswitches = 0;
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  std::vector<Link> links;
  bool gpu_links_known = true;  // false: GPUs may have NVLinks or xGMI links that are not among `links`
  std::vector<Citation> citations;
  std::vector<ProbeSource> sources{};    // of a live probe; empty for presets and files
  std::vector<std::string> remarks{};    // what somebody should look at: "gpu2 runs on 8 of 16 PCIe lanes"
  std::vector<LinkFault> link_faults{};  // those of the remarks that are faults of one link
  std::string gpu_driver{};              // "NVIDIA 550.54.15", empty when unknown

  /// The device's name, as in links of the JSON: "gpu0", "package1", "mlx5_0", "switch2", "nvswitch0".
  std::string device_name(DeviceId id) const;

  /// Of all packages, as far as known.
  int cores() const;

  /// Ranks that one such host carries: its GPUs, or 1 process when it has none.
  int ranks() const { return gpus.empty() ? 1 : static_cast<int>(gpus.size()); }

  /// Where the rank with this index on the host lives: its GPU, or the first package on a host without GPUs.
  DeviceId rank_device(int index_on_host) const;

  /// Makes each text one printable line. For probes: what drivers, firmware and files say may be anything.
  void make_printable();

  /// Throws a usage Error that names the device and the fault: a link to a device that does not exist, a link
  /// from a device to itself, a negative or non-finite bandwidth or latency, no package, two devices of one
  /// name, two GPUs, or a rank and a NIC, with no path between them.
  void validate() const;
};

std::string_view to_text(DeviceKind kind);
std::string_view to_text(LinkKind kind);  // "nvlink", "xgmi", "c2c", "pcie", "socket-bus", "memory"
std::string_view to_text(NicKind kind);   // "infiniband", "ethernet", "unknown"

}  // namespace polyring
