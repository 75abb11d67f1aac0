#include "topology/probe/sysfs.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace polyring::probe {
namespace {

namespace fs = std::filesystem;

/// The first line of a file, empty when it cannot be read. Reading `speed` of an interface that is down
/// fails.
std::string read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The number at the front of the text, 0 when there is none.
double leading_number(std::string_view text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  return number;
}

/// The entries of a folder, empty when there is none.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

NicKind link_layer(const fs::path& port) {
  return read_line(port / "link_layer") == "Ethernet" ? NicKind::ethernet : NicKind::infiniband;
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
    if (rate.find(old) != std::string_view::npos) return 0.8 * line;
  }
  return (64.0 / 66) * line;
}

Bandwidth Sysfs::pcie_bandwidth(const std::string& pci) const {
  const fs::path device = root_ / "bus/pci/devices" / pci;
  const double connected = leading_number(read_line(device / "current_link_width"));
  const double widest = leading_number(read_line(device / "max_link_width"));
  const double lanes = connected > 0 ? std::min(connected, widest) : widest;
  // 255 lanes and the like are what virtual devices report for "unknown".
  if (lanes < 1 || lanes > 32) return {};
  return probe::pcie_bandwidth(read_line(device / "max_link_speed"), static_cast<int>(lanes));
}

bool Sysfs::is_virtual_function(const std::string& pci) const {
  std::error_code failed;
  return !pci.empty() && fs::exists(root_ / "bus/pci/devices" / pci / "physfn", failed);
}

std::vector<Port> Sysfs::openfabrics_ports(const std::string& device) const {
  std::vector<Port> ports;
  for (const fs::path& folder : entries(root_ / "class/infiniband" / device / "ports")) {
    const int number = static_cast<int>(leading_number(folder.filename().string()));
    const bool up = read_line(folder / "state").starts_with("4:");  // "4: ACTIVE"
    ports.push_back({number, up, openfabrics_rate(read_line(folder / "rate"), link_layer(folder))});
  }
  std::ranges::sort(ports, {}, &Port::number);
  return ports;
}

std::optional<NicKind> Sysfs::openfabrics_kind(const std::string& device) const {
  const std::vector<fs::path> ports = entries(root_ / "class/infiniband" / device / "ports");
  if (ports.empty()) return std::nullopt;
  const bool infiniband = std::ranges::any_of(
      ports, [](const fs::path& port) { return link_layer(port) == NicKind::infiniband; });
  return infiniband ? NicKind::infiniband : NicKind::ethernet;
}

std::optional<Port> Sysfs::ethernet_port(const std::string& interface, int number) const {
  const fs::path folder = root_ / "class/net" / interface;
  const std::string state = read_line(folder / "operstate");
  if (state.empty()) return std::nullopt;
  // Virtual interfaces say "unknown" for a state; what they carry then decides.
  const bool up = state == "up" || (state == "unknown" && read_line(folder / "carrier") == "1");
  const double megabits = leading_number(read_line(folder / "speed"));  // -1 when unknown
  return Port{number, up, gigabits_per_second(std::max(megabits, 0.0) / 1000)};
}

}  // namespace polyring::probe
