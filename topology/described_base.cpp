// A described machine that differs from a preset: the preset, changed in what the description says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.hpp"
#include "topology/described_parts.hpp"
#include "topology/link_names.hpp"
#include "topology/presets.hpp"
#include "topology/rank_nics.hpp"
#include "topology/what_if.hpp"

namespace polyring::described {
namespace {

bool joins_gpus(const Link& link) { return link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi; }

/// What a base fixes: a machine that differs in it is another one.
void refuse_shape(const MachineDescription& description) {
  const auto refuse = [&](const auto& stated, std::string_view key) {
    if (!stated) return;
    wrong(stated->where,
          "{} cannot differ from the base '{}'; leave one of them out, and describe what the base would "
          "have said",
          key, description.base->value);
  };
  refuse(description.sockets.count, "the number of sockets");
  refuse(description.gpus.topology, "gpus.topology");
  refuse(description.pcie.switches, "pcie.switches");
  refuse(description.nics.per_switch, "nics.per_switch");
  refuse(description.nics.place, "nics.where");
}

/// Each link has the share of its bandwidth that `factor` says.
void scale_gpu_links(Machine& machine, double factor) {
  for (Link& link : machine.links)
    if (joins_gpus(link)) link.bandwidth = factor * link.bandwidth;
}

/// Other GPUs in the places of those of the base, with as many links as those have.
void change_product(Machine& machine, const Stated<std::string>& product) {
  if (machine.gpus.empty()) wrong(product.where, "the base has no GPUs; choose another one, or none");
  const presets::GpuKind old =
      at(product.where, [&] { return presets::gpu_product(machine.gpus.front().model); });
  const presets::GpuKind kind = at(product.where, [&] { return presets::gpu_product(product.value); });
  const bool linked = std::ranges::any_of(machine.links, joins_gpus);
  const bool c2c =
      std::ranges::any_of(machine.links, [](const Link& link) { return link.kind == LinkKind::c2c; });
  if (linked && (kind.links.kind != old.links.kind || kind.links.count != old.links.count)) {
    wrong(product.where,
          "{} has {} links to other GPUs and {} has {}, so they do not fit its places; choose another base",
          kind.product, kind.links.count, old.product, old.links.count);
  }
  if (c2c != kind.c2c.known())
    wrong(product.where, "{} does not fit the places of {}; choose another base", kind.product, old.product);
  for (Gpu& gpu : machine.gpus) {
    gpu.model = kind.model;
    gpu.memory = kind.memory;
    gpu.memory_bandwidth = kind.memory_bandwidth;
  }
  if (linked) scale_gpu_links(machine, kind.links.each.value / old.links.each.value);
  std::erase_if(machine.citations,
                [&](const Citation& citation) { return citation.fact == old.citation.fact; });
  machine.citations.push_back(kind.citation);
  presets::cite(machine, fmt::format("{} in place of {}", kind.product, old.product),
                as_stated(product.where));
}

void change_links(Machine& machine, const MachineDescription::Gpus& stated) {
  const auto number = [&] { return std::ranges::count_if(machine.links, joins_gpus); };
  if (stated.nvlink && stated.nvlink->value == "none") {
    std::erase_if(machine.links, joins_gpus);
    machine.nvswitches = 0;
    presets::cite(machine, "the GPUs have PCIe alone", as_stated(stated.nvlink->where));
    if (stated.links)
      wrong(stated.links->where, "gpus.links is of NVLinks, and nvlink is \"none\"; leave one of them out");
    at(stated.nvlink->where, [&] {
      machine.validate();
      return 0;
    });
    return;
  }
  if (stated.nvlink || stated.links) {
    const std::string& where = stated.nvlink ? stated.nvlink->where : stated.links->where;
    const presets::GpuLinks own =
        at(where, [&] { return presets::gpu_product(machine.gpus.at(0).model).links; });
    const std::string name = own.kind == LinkKind::xgmi ? "xgmi" : std::to_string(own.version);
    if (number() == 0)
      wrong(where, "the GPUs of the base have no NVLinks; leave gpus.nvlink and gpus.links out");
    if (stated.nvlink && stated.nvlink->value != name)
      wrong(where, "the GPUs have NVLink {}; leave nvlink out", name);
    if (!stated.links) return;
    if (machine.nvswitches == 0)
      wrong(stated.links->where,
            "gpus.links can differ from a base whose GPUs are on NVSwitches alone; leave it out");
    if (stated.links->value > own.count)
      wrong(stated.links->where, "a GPU of the base has {} links, not {}; give at most that", own.count,
            stated.links->value);
    scale_gpu_links(machine, static_cast<double>(stated.links->value) / own.count);
    presets::cite(machine, fmt::format("{} of {} links of a GPU are used", stated.links->value, own.count),
                  as_stated(stated.links->where));
  }
}

void change_gpus(Machine& machine, const MachineDescription::Gpus& stated) {
  if ((stated.nvlink || stated.links) && machine.gpus.empty())
    wrong(stated.nvlink ? stated.nvlink->where : stated.links->where, "the base has no GPUs; leave gpus out");
  if (stated.product) change_product(machine, *stated.product);
  change_links(machine, stated);
  if (!stated.count || stated.count->value == static_cast<int>(machine.gpus.size())) return;
  machine = at(stated.count->where, [&] { return with_gpus_per_host(machine, stated.count->value); });
  machine.citations.back().source = as_stated(stated.count->where);
}

void change_nics(Machine& machine, const MachineDescription& description) {
  const auto& stated = description.nics;
  if (!stated.rate && stated.kind)
    wrong(stated.kind->where, "nics.kind says nothing without nics.rate; add it");
  if (!stated.rate && !stated.count) return;
  const std::string& where = stated.rate ? stated.rate->where : stated.count->where;
  const int known = static_cast<int>(usable_nics(machine).size());
  const int count = stated.count ? stated.count->value : std::max(known, 1);
  if (count == 0) wrong(where, "a base keeps one NIC at least; describe a host without NICs without a base");
  std::optional<presets::NicPart> part;
  if (stated.rate)
    part = nic_part(description, known > 0 ? std::optional(nic_protocol_of(machine)) : std::nullopt);
  machine = at(where, [&] { return with_nics(machine, count, part); });
  for (Citation& citation : machine.citations)
    if (citation.source == kAsAsked) citation.source = as_stated(where);
}

void change_sockets(Machine& machine, const MachineDescription::Sockets& stated) {
  for (Package& package : machine.packages) {
    presets::SocketKind kind{package.model, package.cores, package.memory, package.memory_bandwidth,
                             package.cpu};
    overlay(stated, kind);
    package.model = kind.model;
    package.cores = kind.cores;
    package.memory = kind.memory;
    package.memory_bandwidth = kind.memory_bandwidth;
    package.cpu = kind.cpu;
  }
  if (stated.bus) {
    for (Link& link : machine.links)
      if (link.kind == LinkKind::socket_bus) link.bandwidth = stated.bus->value;
  }
  cite_sockets(machine, stated);
}

/// All PCIe links become faster or slower in the same proportion.
void change_pcie(Machine& machine, const std::optional<Stated<int>>& generation) {
  if (!generation) return;
  Bandwidth widest;
  for (const Link& link : machine.links)
    if (link.kind == LinkKind::pcie) widest = std::max(widest, link.bandwidth);
  if (!widest.known()) wrong(generation->where, "the base has no PCIe links; leave pcie out");
  const double factor = presets::pcie_x16(generation->value).value / widest.value;
  for (Link& link : machine.links)
    if (link.kind == LinkKind::pcie) link.bandwidth = factor * link.bandwidth;
  presets::cite(machine, fmt::format("PCIe gen {} in place of the base's", generation->value),
                as_stated(generation->where));
}

}  // namespace

Cluster cluster_with_base(const MachineDescription& description) {
  refuse_shape(description);
  const Stated<std::string>& base = *description.base;
  Cluster cluster = at(base.where, [&] { return preset(base.value, 1); });
  Machine& machine = cluster.groups.front().machine;
  change_sockets(machine, description.sockets);
  change_pcie(machine, description.pcie.generation);
  change_gpus(machine, description.gpus);
  change_nics(machine, description);
  machine.name = description.name;
  machine.model = fmt::format("{}, changed", machine.model);
  presets::cite(machine, fmt::format("what is not stated is that of {}", base.value), as_stated(base.where));
  cluster.name = description.name;
  cluster.groups.front().count = description.hosts ? description.hosts->value : 1;
  state_fabric(cluster, description.fabric);
  cluster.validate();
  return cluster;
}

}  // namespace polyring::described
