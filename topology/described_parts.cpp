#include "topology/described_parts.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "base/names.hpp"
#include "base/text.hpp"
#include "topology/port_rates.hpp"
#include "topology/what_if.hpp"

namespace polyring::described {
namespace {

constexpr int kMostGpus = 64;
constexpr int kMostNics = 64;
constexpr int kMostSockets = 16;
constexpr int kMostLinks = 128;
constexpr int kMostHosts = 1 << 20;

template <typename Value>
void cite_stated(Machine& machine, const std::optional<Stated<Value>>& stated, const std::string& fact) {
  if (stated) presets::cite(machine, fact, as_stated(stated->where));
}

}  // namespace

void check_range(const std::optional<Stated<int>>& number, std::string_view what, int least, int most) {
  if (!number || (number->value >= least && number->value <= most)) return;
  wrong(number->where, "{} is {}; give {} to {}", what, number->value, least, most);
}

void check_ranges(const MachineDescription& description) {
  check_range(description.hosts, "hosts", 1, kMostHosts);
  check_range(description.sockets.count, "sockets", 1, kMostSockets);
  check_range(description.sockets.cores, "sockets.cores", 1, 4096);
  check_range(description.gpus.count, "gpus.count", 0, kMostGpus);
  check_range(description.gpus.links, "gpus.links", 1, kMostLinks);
  check_range(description.nics.count, "nics.count", 0, kMostNics);
  check_range(description.nics.per_switch, "nics.per_switch", 0, kMostNics);
  check_range(description.pcie.generation, "pcie.generation", 3, 6);
  check_range(description.pcie.switches, "pcie.switches", 0, kMostGpus);
  check_range(description.fabric.hosts_per_leaf, "fabric.hosts_per_leaf", 1, kMostHosts);
  const auto check_latency = [](const std::optional<Stated<Seconds>>& latency, std::string_view what) {
    constexpr Seconds kMost{1};
    if (latency && latency->value > kMost)
      wrong(latency->where, "{} is {}, more than any network takes; give up to 1 s", what,
            to_text(latency->value));
  };
  check_latency(description.fabric.latency, "fabric.latency");
  check_latency(description.fabric.spine_latency, "fabric.spine_latency");
}

presets::NicPart nic_part(const MachineDescription& description, std::optional<NicProtocol> usual) {
  const Stated<std::string>& rate = *description.nics.rate;
  const std::string name = lower_case(rate.value);
  std::optional<NicProtocol> protocol = usual;
  if (description.nics.kind) {
    protocol = description.nics.kind->value;
  } else if (infiniband_rate(name)) {
    protocol = NicProtocol::infiniband;
  } else if (ethernet_rate(name) && (!usual || *usual == NicProtocol::infiniband)) {
    protocol = NicProtocol::ethernet;
  } else if (!usual) {
    const bool is_word = !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0;
    if (!is_word) {
      at(rate.where, [&] { return parse_bandwidth(rate.value, "nics.rate"); });
      wrong(rate.where,
            R"(NICs of several kinds have {}; add kind = "infiniband", "roce", "ethernet" or "efa")",
            rate.value);
    }
    protocol = NicProtocol::infiniband;  // whose rates the error lists
  }
  return at(rate.where,
            [&] { return presets::nic_by_rate(*protocol, rate.value, "nics.rate", as_stated(rate.where)); });
}

void overlay(const MachineDescription::Sockets& stated, presets::SocketKind& kind) {
  if (stated.model) kind.model = stated.model->value;
  if (stated.cores) kind.cores = stated.cores->value;
  if (stated.memory) kind.memory = stated.memory->value;
  if (stated.memory_bandwidth) kind.memory_bandwidth = stated.memory_bandwidth->value;
  // Who another processor is, its name alone does not tell as NCCL asks it.
  if (stated.model) kind.cpu = {};
}

void cite_sockets(Machine& machine, const MachineDescription::Sockets& stated) {
  if (stated.model) cite_stated(machine, stated.model, fmt::format("{} processors", stated.model->value));
  if (stated.cores) cite_stated(machine, stated.cores, fmt::format("{} cores a socket", stated.cores->value));
  if (stated.memory)
    cite_stated(machine, stated.memory, fmt::format("{} of memory a socket", to_text(stated.memory->value)));
  if (stated.memory_bandwidth) {
    cite_stated(machine, stated.memory_bandwidth,
                fmt::format("{} of memory bandwidth a socket", to_text(stated.memory_bandwidth->value)));
  }
  if (stated.bus)
    cite_stated(machine, stated.bus, fmt::format("{} between two sockets", to_text(stated.bus->value)));
}

void state_fabric(Cluster& cluster, const MachineDescription::Network& stated) {
  Fabric& fabric = cluster.fabric;
  const auto cite = [&](std::string fact, const std::string& where) {
    fabric.citations.push_back({std::move(fact), as_stated(where)});
  };
  if (stated.hosts_per_leaf) {
    fabric.hosts_per_leaf = stated.hosts_per_leaf->value;
    cite(fmt::format("{} a leaf switch, or as many of each rail's", counted(fabric.hosts_per_leaf, "host")),
         stated.hosts_per_leaf->where);
  }
  if (stated.latency) {
    fabric.latency = stated.latency->value;
    cite(fmt::format("{} from NIC to NIC under one leaf", to_text(fabric.latency)), stated.latency->where);
  }
  if (stated.spine_latency) {
    fabric.spine_latency = stated.spine_latency->value;
    cite(fmt::format("{} more over the spine", to_text(fabric.spine_latency)), stated.spine_latency->where);
  }
  if (!stated.oversubscription) return;
  const std::string& where = stated.oversubscription->where;
  if (fabric.hosts_per_leaf == 0) {
    wrong(where,
          "fabric.oversubscription needs leaf switches; add hosts_per_leaf, the number of hosts under one");
  }
  cluster = at(where, [&] { return with_oversubscription(cluster, stated.oversubscription->value); });
  cluster.fabric.citations.back().source = as_stated(where);
}

}  // namespace polyring::described
