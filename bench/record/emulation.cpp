#include "bench/record/emulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "base/units.hpp"

namespace polyring {
namespace {

constexpr const char* kSource = "POLYRING_SOURCE";
constexpr const char* kDescription = "POLYRING_EMULATED";
constexpr const char* kRate = "POLYRING_EMULATED_RATE";
constexpr const char* kRails = "POLYRING_EMULATED_RAILS";
constexpr const char* kBurst = "POLYRING_EMULATED_BURST";
constexpr const char* kHostsPerRack = "POLYRING_EMULATED_HOSTS_PER_RACK";
constexpr const char* kUplinkRate = "POLYRING_EMULATED_UPLINK_RATE";
constexpr const char* kUplinkBurst = "POLYRING_EMULATED_UPLINK_BURST";

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

bool shapes_links() { return source_here() == Source::emulated && !variable(kRate).empty(); }

/// 0 where one of the two is not said.
Seconds burst_time(const char* burst, const char* rate) {
  if (variable(rate).empty()) return {};
  const Bandwidth bandwidth = parse_bandwidth(variable(rate), rate);
  return variable(burst).empty() ? Seconds{} : parse_bytes(variable(burst), burst) / bandwidth;
}

/// `otherwise` where it is not set.
int number(const char* name, const char* of, int otherwise) {
  const std::string_view text = variable(name);
  if (text.empty()) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) {
    usage_error("{} '{}' is not a number of {}; scripts/emulate sets it", name, text, of);
  }
  return value;
}

void give_links(Machine& machine, Bandwidth rate, int rails) {
  std::erase_if(machine.links, [](const Link& link) {
    return link.from.kind == DeviceKind::nic || link.to.kind == DeviceKind::nic;
  });
  machine.nics.clear();
  for (int rail = 0; rail < rails; ++rail) {
    Nic nic;
    nic.name = fmt::format("eth{}", rail);
    nic.model = "emulated";
    nic.ports = {{1, true, rate}};
    machine.nics.push_back(nic);
    machine.links.push_back({{DeviceKind::package, 0}, {DeviceKind::nic, rail}, LinkKind::pcie, {}, {}});
  }
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

void give_emulated_link(Machine& machine) {
  if (shapes_links())
    give_links(machine, parse_bandwidth(variable(kRate), kRate), number(kRails, "rails", 1));
}

void describe_emulated_fabric(Cluster& cluster) {
  if (!shapes_links()) return;
  cluster.fabric.citations = {
      {"rates of the hosts' links and of the racks' uplinks", "set by scripts/emulate"}};
  cluster.fabric.hosts_per_leaf = number(kHostsPerRack, "hosts", 0);
  if (cluster.fabric.hosts_per_leaf > 0)
    cluster.fabric.leaf_uplink = parse_bandwidth(variable(kUplinkRate), kUplinkRate);
}

Seconds emulated_head_start() {
  if (!shapes_links()) return {};
  return std::max(burst_time(kBurst, kRate), burst_time(kUplinkBurst, kUplinkRate));
}

}  // namespace polyring
