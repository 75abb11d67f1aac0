// Small copies of /sys for tests, with the links between folders that the real one has.
#pragma once

#include <string>

#include "tests/topology/support.hpp"

namespace polyring::testing {

/// What the files of a PCI function hold.
struct PciFiles {
  std::string device_class;  // "0x030200"
  std::string vendor = "0x10de";
  std::string device = "0x1234";
  int numa = -1;
  int lanes = 16;
  int max_lanes = 16;
  std::string speed = "16.0";
  std::string max_speed = "16.0";
  std::string subsystem_vendor = "0x0000";
  std::string subsystem_device = "0x0000";
};

class SysfsTree {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }
  void write(const std::string& name, const std::string& text) const { folder_.write(name, text + "\n"); }

  void link(const std::string& name, const std::string& target) const {
    const std::filesystem::path entry = path() / name;
    std::filesystem::create_directories(entry.parent_path());
    std::filesystem::create_symlink(std::filesystem::relative(path() / target, entry.parent_path()), entry);
  }

  /// A function at a place such as `pci0000:00/0000:00:01.0/0000:01:00.0`; its bridges need a call of their
  /// own.
  void pci(const std::string& place, const PciFiles& files) const {
    const std::string folder = "devices/" + place + "/";
    write(folder + "class", files.device_class);
    write(folder + "vendor", files.vendor);
    write(folder + "device", files.device);
    write(folder + "subsystem_vendor", files.subsystem_vendor);
    write(folder + "subsystem_device", files.subsystem_device);
    write(folder + "numa_node", std::to_string(files.numa));
    write(folder + "current_link_width", std::to_string(files.lanes));
    write(folder + "max_link_width", std::to_string(files.max_lanes));
    write(folder + "current_link_speed", files.speed + " GT/s PCIe");
    write(folder + "max_link_speed", files.max_speed + " GT/s PCIe");
    link("bus/pci/devices/" + place.substr(place.rfind('/') + 1), "devices/" + place);
  }

  void bridge(const std::string& place, int lanes = 16) const {
    pci(place, {.device_class = "0x060400", .vendor = "0x8086", .lanes = lanes, .max_lanes = lanes});
  }

  /// An OpenFabrics device with one port; GUIDs as the driver writes them.
  void openfabrics(const std::string& name, const std::string& place, const std::string& system_guid,
                   const std::string& port_guid, const std::string& state = "4: ACTIVE",
                   const std::string& physical = "5: LinkUp", const std::string& layer = "InfiniBand") const {
    const std::string folder = "devices/" + place + "/infiniband/" + name + "/";
    write(folder + "hca_type", "MT4129");
    write(folder + "sys_image_guid", system_guid);
    write(folder + "ports/1/state", state);
    write(folder + "ports/1/phys_state", physical);
    write(folder + "ports/1/rate", "200 Gb/sec (4X HDR)");
    write(folder + "ports/1/link_layer", layer);
    write(folder + "ports/1/gids/0", "fe80:0000:0000:0000:" + port_guid);
    link(folder + "device", "devices/" + place);
    link("class/infiniband/" + name, "devices/" + place + "/infiniband/" + name);
  }

  void interface(const std::string& name, const std::string& place, const std::string& state,
                 const std::string& speed, const std::string& carrier = "1",
                 const std::string& mtu = "1500") const {
    const std::string folder = "devices/" + place + "/net/" + name + "/";
    write(folder + "operstate", state);
    write(folder + "speed", speed);
    write(folder + "carrier", carrier);
    write(folder + "mtu", mtu);
    write(folder + "type", "1");
    link(folder + "device", "devices/" + place);
    link("class/net/" + name, "devices/" + place + "/net/" + name);
  }

  /// Two packages of two cores with two threads each, and a NUMA node of 1 GiB for each.
  void two_sockets() const {
    for (int cpu = 0; cpu < 8; ++cpu) {
      const std::string folder = "devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      write(folder + "physical_package_id", std::to_string(cpu % 4 / 2));
      write(folder + "die_id", "0");
      write(folder + "core_id", std::to_string(cpu % 2));
    }
    for (int node = 0; node < 2; ++node) {
      const std::string folder = "devices/system/node/node" + std::to_string(node) + "/";
      write(folder + "cpulist", node == 0 ? "0-1,4-5" : "2-3,6-7");
      write(folder + "meminfo", "Node " + std::to_string(node) + " MemTotal:       1048576 kB");
    }
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace polyring::testing
