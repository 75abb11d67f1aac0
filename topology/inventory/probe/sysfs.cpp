#include "topology/inventory/probe/sysfs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "topology/inventory/probe/files.hpp"
#include "topology/port_rates.hpp"

namespace polyring::probe {
namespace {

namespace fs = std::filesystem;

/// `0000:01:00.0`; the domain has four digits or more.
bool is_pci_address(std::string_view name) {
  constexpr std::string_view kPattern = "x:xx:xx.x";
  if (name.size() < kPattern.size() + 3) return false;
  const std::string_view end = name.substr(name.size() - kPattern.size());
  const auto digit = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 0; i < kPattern.size(); ++i) {
    if (kPattern[i] == 'x' ? !digit(end[i]) : end[i] != kPattern[i]) return false;
  }
  return std::ranges::all_of(name.substr(0, name.size() - kPattern.size()), digit);
}

/// The PCI devices on the way to a folder of /sys/devices, from the top, and the host bridge above them.
struct Chain {
  std::string host_bridge;
  std::vector<std::string> addresses;
};

Chain chain_of(const fs::path& folder) {
  Chain chain;
  for (const fs::path& part : folder) {
    const std::string name = part.string();
    if (is_pci_address(name)) {
      chain.addresses.push_back(name);
    } else if (chain.addresses.empty() && name.starts_with("pci") && name.find(':') != std::string::npos) {
      chain.host_bridge = name;
    }
  }
  return chain;
}

void find_pci_folders(const fs::path& folder, std::map<std::string, fs::path>& found) {
  for (const fs::path& entry : entries(folder)) {
    const std::string name = entry.filename().string();
    std::error_code failed;
    if (!is_pci_address(name) || fs::is_symlink(entry, failed)) continue;
    found[name] = entry;
    find_pci_folders(entry, found);
  }
}

/// Nothing where the file is missing. AWS's EFA says "Unknown": it runs over Ethernet, as all but InfiniBand.
std::optional<NicKind> link_layer(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return text == "InfiniBand" ? NicKind::infiniband : NicKind::ethernet;
}

/// Of an interface, by its type in linux/if_arp.h.
std::optional<NicKind> link_layer_of_type(std::string_view text) {
  constexpr long kArphrdEther = 1;
  constexpr long kArphrdInfiniband = 32;
  const long type = whole_number(text).value_or(kArphrdEther);
  if (type == kArphrdEther) return NicKind::ethernet;
  return type == kArphrdInfiniband ? std::optional(NicKind::infiniband) : std::nullopt;
}

/// "ACTIVE" of "4: ACTIVE".
std::string after_number(const std::string& text) {
  const auto colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

/// Such as the one to a server's management processor.
bool hangs_on_usb(const fs::path& device) {
  return std::any_of(device.begin(), device.end(), [](const fs::path& part) {
    const std::string name = part.string();
    return name.starts_with("usb") && whole_number(name.substr(3)).has_value();
  });
}

/// Of a function behind the adapter's switch, whose own ports are `p0`: `pf0`, `pf0vf1`, `pf0sf1`, and the
/// same behind `c1` where the function is another host's (devlink-port.rst of the Linux kernel).
bool is_representor(std::string_view port_name) {
  if (port_name.starts_with('c')) {
    port_name.remove_prefix(1);
    port_name.remove_prefix(std::min(port_name.find_first_not_of("0123456789"), port_name.size()));
  }
  return port_name.starts_with("pf");
}

/// Ports are numbered from 1, in a byte; 0 for the name of what is none.
int port_number(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (name.find_first_not_of("0123456789") != std::string::npos) return 0;
  const long number = whole_number(name).value_or(0);
  return number <= 0xff ? static_cast<int>(number) : 0;
}

/// Where a link led that was copied as a file with its target's name, as archives and file systems without
/// links make it: no file of sysfs itself begins so. Empty where it is none.
std::string link_file(const fs::path& path) {
  std::error_code failed;
  if (fs::symlink_status(path, failed).type() != fs::file_type::regular) return {};
  constexpr std::uintmax_t kLongest = 4096;
  if (fs::file_size(path, failed) > kLongest || failed) return {};
  const std::string text = read_small_file(path);
  return text.starts_with("../") ? text.substr(0, text.find('\n')) : std::string();
}

int lanes_of(const std::string& text) {
  const double lanes = leading_number(text);
  // 255 lanes and the like are what virtual devices report for "unknown".
  return lanes >= 1 && lanes <= 32 ? static_cast<int>(lanes) : 0;
}

}  // namespace

Bandwidth pcie_bandwidth(std::string_view speed, int lanes) {
  const double gigatransfers = leading_number(speed);
  // Generations 1 and 2 carry 8 bits in 10, 3 to 5 carry 128 in 130, 6 carries 242 bytes in a flit of 256.
  const double coding = gigatransfers <= 5 ? 0.8 : gigatransfers <= 32 ? 128.0 / 130 : 242.0 / 256;
  return gigabits_per_second(gigatransfers * coding * std::max(lanes, 0));
}

Bandwidth openfabrics_rate(std::string_view rate, NicKind link_layer) {
  const Bandwidth line = gigabits_per_second(leading_number(rate));
  if (link_layer == NicKind::ethernet) return line;
  for (const std::string_view old : {"SDR", "DDR", "QDR"}) {
    if (rate.find(old) != std::string_view::npos) return infiniband_payload(line, true);
  }
  return infiniband_payload(line, false);
}

Sysfs::Sysfs(const fs::path& root) : live_(root == kLive) {
  std::error_code failed;
  root_ = fs::weakly_canonical(root, failed);
}

fs::path Sysfs::through_link_files(const fs::path& name) const {
  if (live_) return root_ / name;
  fs::path here = root_;
  for (const fs::path& part : (root_ / name).lexically_relative(root_)) {
    here /= part;
    for (int links = 0; links < kMostLinks; ++links) {
      const std::string target = link_file(here);
      if (target.empty()) break;
      here = (here.parent_path() / target).lexically_normal();
    }
  }
  return here;
}

fs::path Sysfs::resolved(const fs::path& name) const {
  std::error_code failed;
  fs::path path = fs::canonical(through_link_files(name), failed);
  if (failed) return {};
  if (std::ranges::mismatch(root_, path).in1 == root_.end()) return path;
  outside_.insert((root_ / name).string());
  return {};
}

std::string Sysfs::text(const fs::path& name) const {
  const fs::path path = root_ / name;
  std::string text = read_small_file(resolved(path));
  if (text.empty() && access(path.c_str(), R_OK) != 0 && errno == EACCES) refused_.insert(path.string());
  return text;
}

std::string Sysfs::line(const fs::path& name) const {
  const std::string text = this->text(name);
  return text.substr(0, text.find('\n'));
}

std::vector<fs::path> Sysfs::entries(const fs::path& name) const {
  const fs::path folder = root_ / name;
  const fs::path itself = resolved(folder);
  std::vector<fs::path> found = itself.empty() ? std::vector<fs::path>{} : probe::entries(itself);
  for (fs::path& entry : found) entry = folder / entry.filename();
  return found;
}

fs::path Sysfs::pci_folder(const std::string& pci) const {
  fs::path listed = root_ / "bus/pci/devices" / pci;
  if (!resolved(listed).empty()) return listed;
  if (!found_) {
    found_.emplace();
    for (const fs::path& entry : entries("devices")) {
      if (entry.filename().string().starts_with("pci")) find_pci_folders(entry, *found_);
    }
  }
  const auto found = found_->find(pci);
  return found == found_->end() ? listed : found->second;
}

std::vector<std::string> Sysfs::bridges_above(const std::string& pci) const {
  std::vector<std::string> addresses = chain_of(resolved(pci_folder(pci))).addresses;
  if (!addresses.empty()) addresses.pop_back();
  return addresses;
}

std::vector<PciDevice> Sysfs::pci_devices() const {
  std::set<std::string> addresses;
  for (const fs::path& entry : entries("bus/pci/devices")) addresses.insert(entry.filename().string());
  if (addresses.empty()) {
    pci_folder("none");  // looks below devices/
    for (const auto& [address, folder] : *found_) addresses.insert(address);
  }
  std::vector<PciDevice> devices;
  for (const std::string& address : addresses) {
    if (!is_pci_address(address)) continue;
    const fs::path folder = pci_folder(address);
    const auto pci_class = static_cast<unsigned>(whole_number(line(folder / "class")).value_or(0));
    devices.push_back({address, pci_class >> 8, pci_identity(address), chain_of(resolved(folder)).host_bridge,
                       bridges_above(address)});
  }
  return devices;
}

PciIdentity Sysfs::pci_identity(const std::string& pci) const {
  const fs::path folder = pci_folder(pci);
  const auto number = [&](const char* name) {
    return static_cast<unsigned>(whole_number(line(folder / name)).value_or(0));
  };
  return {number("vendor"), number("device"), number("subsystem_vendor"), number("subsystem_device")};
}

PcieLink Sysfs::pcie_link(const std::string& pci) const {
  const fs::path folder = pci_folder(pci);
  return {leading_number(line(folder / "current_link_speed")),
          leading_number(line(folder / "max_link_speed")), lanes_of(line(folder / "current_link_width")),
          lanes_of(line(folder / "max_link_width"))};
}

Bandwidth Sysfs::pcie_bandwidth(const std::string& pci) const {
  const PcieLink link = pcie_link(pci);
  if (link.max_lanes == 0) return {};
  const int lanes = link.lanes > 0 ? std::min(link.lanes, link.max_lanes) : link.max_lanes;
  return probe::pcie_bandwidth(line(pci_folder(pci) / "max_link_speed"), lanes);
}

bool Sysfs::is_virtual_function(const std::string& pci) const {
  return !pci.empty() && !resolved(pci_folder(pci) / "physfn").empty();
}

std::string Sysfs::gpu_driver() const {
  constexpr std::size_t kLongest = 60;
  std::string drivers;
  for (const auto& [module, vendor] : {std::pair{"nvidia", "NVIDIA"}, std::pair{"amdgpu", "amdgpu"}}) {
    const std::string version = line(fs::path("module") / module / "version").substr(0, kLongest);
    if (!version.empty()) drivers += fmt::format("{}{} {}", drivers.empty() ? "" : " and ", vendor, version);
  }
  return drivers;
}

Bytes Sysfs::gpu_memory(const std::string& pci) const {
  return {
      static_cast<std::uint64_t>(whole_number(line(pci_folder(pci) / "mem_info_vram_total")).value_or(0))};
}

std::string Sysfs::pci_of(const fs::path& entry) const {
  const std::vector<std::string> addresses = chain_of(resolved(entry / "device")).addresses;
  return addresses.empty() ? "" : addresses.back();
}

std::map<std::string, std::string> Sysfs::openfabrics_devices() const {
  std::map<std::string, std::string> devices;
  for (const fs::path& entry : entries("class/infiniband")) {
    const std::string name = entry.filename().string();
    const bool has_ports = !entries(entry / "ports").empty();
    if (!has_ports || !ports_of(name).empty()) devices[name] = pci_of(entry);
  }
  return devices;
}

std::vector<fs::path> Sysfs::ports_of(const std::string& device) const {
  const fs::path entry = fs::path("class/infiniband") / device;
  std::vector<fs::path> ports = entries(entry / "ports");
  std::erase_if(ports, [](const fs::path& port) { return port_number(port) == 0; });
  std::ranges::stable_sort(ports, {}, port_number);
  const bool switches = std::ranges::any_of(entries(entry / "device/net"), [&](const fs::path& interface) {
    return is_representor(line(interface / "phys_port_name"));
  });
  if (!switches) return ports;
  const auto is_of_representor = [&](const fs::path& port) {
    const std::string interface = line(port / "gid_attrs/ndevs/0");
    if (!interface.empty()) return is_representor(line(fs::path("class/net") / interface / "phys_port_name"));
    // A port of raw packets alone has no address.
    return port != ports.front() && line(port / "gids/0").find_first_not_of("0:") == std::string::npos;
  };
  std::vector<fs::path> own;
  std::ranges::remove_copy_if(ports, std::back_inserter(own), is_of_representor);
  return own;
}

std::vector<Port> Sysfs::openfabrics_ports(const std::string& device) const {
  std::vector<Port> ports;
  for (const fs::path& folder : ports_of(device)) {
    const int number = port_number(folder);
    const bool up = line(folder / "state").starts_with("4:");  // "4: ACTIVE"
    const NicKind kind = link_layer(line(folder / "link_layer")).value_or(NicKind::infiniband);
    // Behind its subnet's prefix the first GID has the port's GUID; RoCE makes it of the Ethernet address.
    const std::string guid = kind == NicKind::infiniband ? guid_text(line(folder / "gids/0")) : std::string();
    ports.push_back({number, up, openfabrics_rate(line(folder / "rate"), kind), guid});
  }
  return ports;
}

std::vector<PortState> Sysfs::openfabrics_states(const std::string& device) const {
  std::vector<PortState> states;
  for (const fs::path& folder : ports_of(device)) {
    states.push_back({port_number(folder), after_number(line(folder / "state")),
                      after_number(line(folder / "phys_state"))});
  }
  return states;
}

std::optional<NicKind> Sysfs::openfabrics_kind(const std::string& device) const {
  std::optional<NicKind> kind;
  for (const fs::path& port : ports_of(device)) {
    const auto layer = link_layer(line(port / "link_layer"));
    if (layer && kind != NicKind::infiniband) kind = layer;
  }
  return kind;
}

std::string Sysfs::openfabrics_system_guid(const std::string& device) const {
  return guid_text(line(fs::path("class/infiniband") / device / "sys_image_guid"));
}

bool Sysfs::leaves_by_another(const std::string& interface) const {
  const fs::path folder = fs::path("class/net") / interface;
  if (is_representor(line(folder / "phys_port_name"))) return true;
  return std::ranges::any_of(
      entries(folder), [](const fs::path& entry) { return entry.filename().string().starts_with("lower_"); });
}

std::optional<Port> Sysfs::ethernet_port(const std::string& interface, int number) const {
  const fs::path folder = root_ / "class/net" / interface;
  const std::string state = line(folder / "operstate");
  if (state.empty()) return std::nullopt;
  // Virtual interfaces say "unknown" for a state; what they carry then decides.
  const bool connected = state == "up" || (state == "unknown" && line(folder / "carrier") == "1");
  const bool standby = line(folder / "bonding_slave/state") == "backup";
  const double megabits = leading_number(line(folder / "speed"));  // -1 when unknown
  return Port{number, connected && !standby, gigabits_per_second(std::max(megabits, 0.0) / 1000)};
}

std::vector<Interface> Sysfs::interfaces() const {
  std::vector<Interface> found;
  for (const fs::path& folder : entries("class/net")) {
    const std::string name = folder.filename().string();
    const auto port = ethernet_port(name, 1);
    if (!port || resolved(folder / "device").empty() || hangs_on_usb(resolved(folder / "device")) ||
        leaves_by_another(name))
      continue;
    found.push_back({name, pci_of(folder), *port, link_layer_of_type(line(folder / "type")),
                     // An interface that nobody has set up refuses to tell.
                     line(folder / "carrier") == "0", line(folder / "bonding_slave/state") == "backup",
                     static_cast<int>(whole_number(line(folder / "mtu")).value_or(0))});
  }
  return found;
}

std::vector<Bond> Sysfs::bonds() const {
  std::vector<Bond> found;
  for (const fs::path& folder : entries("class/net")) {
    const std::string mode = line(folder / "bonding/mode");  // "802.3ad 4"
    if (mode.empty()) continue;
    Bond bond{folder.filename().string(), mode.substr(0, mode.find(' ')), {}};
    std::string members = line(folder / "bonding/slaves");
    while (!members.empty()) {
      const auto space = std::min(members.find(' '), members.size());
      if (space > 0) bond.members.push_back(members.substr(0, space));
      members.erase(0, space + 1);
    }
    found.push_back(std::move(bond));
  }
  return found;
}

}  // namespace polyring::probe
