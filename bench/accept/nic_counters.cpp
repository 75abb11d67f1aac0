#include "bench/accept/nic_counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace polyring {
namespace {

namespace fs = std::filesystem;

// Names of Linux' Documentation/ABI/stable/sysfs-class-infiniband, and of mlx5's hw_counters.
constexpr std::array kOfLinks{"symbol_error",
                              "link_error_recovery",
                              "link_downed",
                              "port_rcv_errors",
                              "port_rcv_remote_physical_errors",
                              "port_xmit_constraint_errors",
                              "port_rcv_constraint_errors",
                              "local_link_integrity_errors",
                              "excessive_buffer_overrun_errors",
                              "rx_icrc_encapsulated"};
constexpr std::array kOfLoss{"port_xmit_discards",  "out_of_sequence",       "packet_seq_err",
                             "implied_nak_seq_err", "local_ack_timeout_err", "roce_adp_retrans",
                             "rx_fifo_errors",      "rx_over_errors",        "rx_missed_errors"};

bool is_one_of(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Of Ethernet's: rx_errors, rx_crc_errors, tx_errors, tx_carrier_errors and more.
bool is_of_ethernet(std::string_view name) { return name.ends_with("_errors"); }

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) found.push_back(entry.path());
  return found;
}

void read_counter(const fs::path& file, const std::string& name,
                  std::map<std::string, std::uint64_t>& counters) {
  std::ifstream text(file);
  std::uint64_t value = 0;
  if (text >> value) counters[name] = value;
}

void read_openfabrics(const fs::path& root, NicCounters& found) {
  for (const fs::path& device : entries(root / "sys/class/infiniband")) {
    for (const fs::path& port : entries(device / "ports")) {
      auto& counters = found[fmt::format("{} port {}", device.filename().string(), port.filename().string())];
      for (const char* folder : {"counters", "hw_counters"}) {
        for (const fs::path& file : entries(port / folder)) {
          const std::string name = file.filename().string();
          if (is_one_of(kOfLinks, name) || is_one_of(kOfLoss, name)) read_counter(file, name, counters);
        }
      }
    }
  }
}

void read_interfaces(const fs::path& root, NicCounters& found) {
  for (const fs::path& interface : entries(root / "sys/class/net")) {
    std::error_code none;
    if (!fs::exists(interface / "device", none)) continue;  // bridges, bonds and what containers have
    auto& counters = found[interface.filename().string()];
    for (const fs::path& file : entries(interface / "statistics")) {
      const std::string name = file.filename().string();
      if (is_of_ethernet(name)) read_counter(file, name, counters);
    }
    read_counter(interface / "carrier_changes", "carrier_changes", counters);
  }
}

/// "Tcp: names" and "Tcp: values", a line each.
void read_tcp(const fs::path& root, NicCounters& found) {
  std::ifstream file(root / "proc/net/snmp");
  std::string names;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Tcp:")) continue;
    if (names.empty()) {
      names = line;
      continue;
    }
    std::istringstream name_of(names);
    std::istringstream value_of(line);
    std::string name;
    std::string value;
    while (name_of >> name && value_of >> value)
      if (name == "OutSegs" || name == "RetransSegs") std::istringstream(value) >> found[kTcp][name];
    return;
  }
}

}  // namespace

NicCounters read_nic_counters(const fs::path& root) {
  NicCounters found;
  read_openfabrics(root, found);
  read_interfaces(root, found);
  std::erase_if(found, [](const auto& port) { return port.second.empty(); });
  read_tcp(root, found);
  return found;
}

NicCounters grown(const NicCounters& before, const NicCounters& after) {
  NicCounters grown;
  for (const auto& [port, counters] : after) {
    const auto was = before.find(port);
    if (was == before.end()) continue;
    for (const auto& [name, value] : counters) {
      const auto old = was->second.find(name);
      // One that is less was reset meanwhile, and has counted that from 0.
      if (old != was->second.end() && value != old->second)
        grown[port][name] = value > old->second ? value - old->second : value;
    }
  }
  std::erase_if(grown, [](const auto& port) {
    return std::ranges::all_of(port.second, [](const auto& counter) { return counter.second == 0; });
  });
  return grown;
}

bool is_full(const std::string& counter, std::uint64_t value) {
  // Bits of the PortCounters attribute, InfiniBand Architecture Specification 1.3, volume 1, 16.1.3.5, where
  // the extended ones of 64 bits are not used instead.
  static const std::map<std::string, int> kBits{{"symbol_error", 16},
                                                {"link_error_recovery", 8},
                                                {"link_downed", 8},
                                                {"port_rcv_errors", 16},
                                                {"port_rcv_remote_physical_errors", 16},
                                                {"port_xmit_constraint_errors", 8},
                                                {"port_rcv_constraint_errors", 8},
                                                {"local_link_integrity_errors", 4},
                                                {"excessive_buffer_overrun_errors", 4},
                                                {"port_xmit_discards", 16}};
  const auto bits = kBits.find(counter);
  return bits != kBits.end() && value == (std::uint64_t{1} << bits->second) - 1;
}

bool tells_of_loss(const std::string& counter) { return is_one_of(kOfLoss, counter); }

}  // namespace polyring
