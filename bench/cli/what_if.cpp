#include "bench/cli/what_if.hpp"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <utility>

#include "base/error.hpp"
#include "base/names.hpp"
#include "topology/port_rates.hpp"
#include "topology/what_if.hpp"

namespace polyring {
namespace {

constexpr int kMostNics = 64;
constexpr std::size_t kLongest = 64;

struct AskedNics {
  int count = 0;
  std::string rate;  // empty: as it is
};

AskedNics parse_nics(const std::string& text) {
  AskedNics asked;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, asked.count);
  const bool rated = rest != end && (*rest == 'x' || *rest == 'X') && rest + 1 != end;
  if (error != std::errc{} || (rest != end && !rated) || text.size() > kLongest)
    usage_error("--nics '{}' is not COUNTxRATE; write it as 4x400Gb/s, 4xndr, 4x100GbE or 4",
                text.substr(0, kLongest));
  if (asked.count < 1 || asked.count > kMostNics)
    usage_error("--nics {} gives each host {} NICs; give 1 to {}", text, asked.count, kMostNics);
  if (rated) asked.rate.assign(rest + 1, end);
  return asked;
}

/// Of NICs like those that the machine has, unless the rate is another protocol's.
presets::NicPart part_of(const Machine& machine, const std::string& rate) {
  const std::string name = lower_case(rate);
  NicProtocol protocol = nic_protocol_of(machine);
  if (infiniband_rate(name)) protocol = NicProtocol::infiniband;
  if (ethernet_rate(name) && protocol == NicProtocol::infiniband) protocol = NicProtocol::roce;
  return presets::nic_by_rate(protocol, rate, "--nics", "asked for by --nics");
}

/// Lets citations that a change has added name the option.
void cite_option(std::vector<Citation>& citations, const std::string& option) {
  for (Citation& citation : citations)
    if (citation.source.starts_with(kAsAsked)) citation.source = "asked for by " + option;
}

/// Changes each kind of host, and says so. `change` may refuse some of them, but not all.
void change_hosts(Inventory& hosts, const std::string& option,
                  const std::function<Machine(const Machine&)>& change) {
  std::vector<const Machine*> changed;
  std::vector<std::string> facts;
  std::optional<Error> refused;
  for (HostGroup& group : hosts.cluster.groups) {
    try {
      Machine machine = change(group.machine);
      facts.push_back(machine.citations.back().fact);
      cite_option(machine.citations, option);
      group.machine = std::move(machine);
      changed.push_back(&group.machine);
    } catch (const Error& error) {
      if (!refused) refused = error;
    }
  }
  if (changed.empty() && refused) throw *refused;
  add_asked(hosts, [&](const Machine& machine) {
    for (std::size_t i = 0; i < changed.size(); ++i)
      if (changed[i] == &machine) return facts[i];
    return std::string();
  });
}

void change_fabric(Inventory& hosts, const std::string& option, Cluster changed) {
  hosts.cluster = std::move(changed);
  hosts.asked.push_back(hosts.cluster.fabric.citations.back().fact);
  cite_option(hosts.cluster.fabric.citations, option);
}

bool is_uplink(const std::string& what) {
  const std::string name = lower_case(what);
  return name == "leaf-uplink" || name == "leaf uplink";
}

}  // namespace

void WhatIfOptions::add_to(Subcommand command) {
  command
      .add_option(
          "--nics", nics,
          "What if each host had so many NICs, of this rate or of theirs: 4x400Gb/s, 4xndr, 4x100GbE, 4")
      .type_name("NxRATE");
  command
      .add_option("--oversubscription", oversubscription,
                  "What if leaf switches had N times less bandwidth upwards than to their hosts: 2, or 2:1")
      .type_name("N");
  command.add_option("--gpus-per-host", gpus_per_host, "What if each host had its first N GPUs alone")
      .range(1, 1024)
      .type_name("N");
  command
      .add_option(
          "--without", without,
          "What if a NIC (mlx5_3) or GPU (gpu3) of each host were missing, one NVLink between two devices "
          "(gpu0-gpu1, gpu0-nvswitch0), or one uplink of each leaf (leaf-uplink); may be repeated")
      .one_value_each_time()
      .type_name("DEVICE");
}

void WhatIfOptions::apply(Inventory& hosts) const {
  if (gpus_per_host) {
    change_hosts(hosts, fmt::format("--gpus-per-host {}", *gpus_per_host),
                 [&](const Machine& machine) { return with_gpus_per_host(machine, *gpus_per_host); });
  }
  if (!nics.empty()) {
    const AskedNics asked = parse_nics(nics);
    change_hosts(hosts, "--nics " + nics, [&](const Machine& machine) {
      return with_nics(machine, asked.count,
                       asked.rate.empty() ? std::nullopt : std::optional(part_of(machine, asked.rate)));
    });
  }
  if (!oversubscription.empty()) {
    const double ratio = parse_oversubscription(oversubscription, "--oversubscription");
    change_fabric(hosts, "--oversubscription " + oversubscription,
                  with_oversubscription(hosts.cluster, ratio));
  }
  for (const std::string& what : without) {
    const std::string option = "--without " + what.substr(0, kLongest);
    if (is_uplink(what)) {
      change_fabric(hosts, option, without_leaf_uplink(hosts.cluster));
    } else {
      change_hosts(hosts, option, [&](const Machine& machine) { return polyring::without(machine, what); });
    }
  }
  hosts.cluster.validate();
}

}  // namespace polyring
