#include "bench/emulation.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "topology/error.hpp"
#include "topology/units.hpp"

namespace polyring {
namespace {

constexpr const char* kSource = "POLYRING_SOURCE";
constexpr const char* kDescription = "POLYRING_EMULATED";
constexpr const char* kRate = "POLYRING_EMULATED_RATE";
constexpr const char* kHostsPerRack = "POLYRING_EMULATED_HOSTS_PER_RACK";
constexpr const char* kUplinkRate = "POLYRING_EMULATED_UPLINK_RATE";

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

int hosts_per_rack() {
  const std::string_view text = variable(kHostsPerRack);
  if (text.empty()) return 0;
  int hosts = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hosts);
  if (error != std::errc{} || end != text.data() + text.size() || hosts < 1) {
    usage_error("{} '{}' is not a number of hosts; scripts/emulate sets it", kHostsPerRack, text);
  }
  return hosts;
}

void give_link(Machine& machine, Bandwidth rate) {
  std::erase_if(machine.links, [](const Link& link) {
    return link.from.kind == DeviceKind::nic || link.to.kind == DeviceKind::nic;
  });
  Nic nic;
  nic.name = "eth0";
  nic.model = "emulated";
  nic.ports = {{1, true, rate}};
  machine.nics = {nic};
  machine.links.push_back({{DeviceKind::package, 0}, {DeviceKind::nic, 0}, LinkKind::pcie, {}, {}});
}

}  // namespace

Source source_here() {
  const std::string_view text = variable(kSource);
  for (const Source source : {Source::measured, Source::emulated}) {
    if (text == to_text(source)) return source;
  }
  if (text.empty()) return Source::measured;
  usage_error("{} '{}' is neither measured nor emulated; unset it, and let scripts/emulate set it", kSource,
              text);
}

std::optional<std::string> emulation_note() {
  if (source_here() != Source::emulated) return std::nullopt;
  const std::string_view description = variable(kDescription);
  return fmt::format("An emulated cluster on one machine{}{}.", description.empty() ? "" : ": ", description);
}

void describe_emulated_network(Cluster& cluster) {
  if (source_here() != Source::emulated || variable(kRate).empty()) return;
  const Bandwidth rate = parse_bandwidth(variable(kRate), kRate);
  for (HostGroup& group : cluster.groups) give_link(group.machine, rate);
  cluster.fabric.citations = {
      {"rates of the hosts' links and of the racks' uplinks", "set by scripts/emulate"}};
  cluster.fabric.hosts_per_leaf = hosts_per_rack();
  if (cluster.fabric.hosts_per_leaf > 0)
    cluster.fabric.leaf_uplink = parse_bandwidth(variable(kUplinkRate), kUplinkRate);
}

}  // namespace polyring
