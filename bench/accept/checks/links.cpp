// links: PCIe links, NVLinks and ports that do less than they could, or than those of other hosts.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "base/text.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"
#include "bench/accept/machine_like.hpp"
#include "topology/host_names.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "links";
/// What presets and files say is rounded.
constexpr double kToleranceOfLike = 0.05;

/// By host and device, why; what was found first says it.
using Faults = std::map<std::pair<std::string, std::string>, std::string>;

void add_differences(const Machine& usual, const Machine& other, double tolerance,
                     const std::vector<std::string>& hosts, const std::string& beside, Faults& faults) {
  for (const Difference& difference : differences(usual, other, tolerance)) {
    if (difference.link_of.empty()) continue;
    for (const std::string& host : hosts)
      faults.try_emplace({host, difference.link_of},
                         fmt::format("{}{}", sentence(difference, std::span(&host, 1)), beside));
  }
}

/// A preset's NICs have the names of one driver: those of a kind are taken in their order.
Machine with_nics_named_as(Machine ideal, const Machine& machine) {
  const auto is_there = [&](const Nic& nic) {
    return std::ranges::find(machine.nics, nic.name, &Nic::name) != machine.nics.end();
  };
  std::map<NicKind, std::vector<std::string>> names;
  for (const Nic& nic : machine.nics)
    if (std::ranges::find(ideal.nics, nic.name, &Nic::name) == ideal.nics.end())
      names[nic.kind].push_back(nic.name);
  std::map<NicKind, std::size_t> taken;
  for (Nic& nic : ideal.nics) {
    if (is_there(nic)) continue;
    const std::vector<std::string>& of_kind = names[nic.kind];
    if (const std::size_t next = taken[nic.kind]++; next < of_kind.size()) nic.name = of_kind[next];
  }
  return ideal;
}

/// Why its links are not compared, as a sentence; empty: they are.
std::string why_unknown(const Inventory& inventory, const Machine& machine, const std::string& like) {
  if (machine.gpus.size() > 1 && !machine.gpu_links_known)
    return "Which links join its GPUs is not known, since their driver's library says nothing of them.";
  const std::vector<HostKind> kinds = kinds_of(inventory.cluster);
  const Machine& usual = inventory.cluster.groups[index(kinds.front().groups.front())].machine;
  if (like.empty() && is_another_kind(differences(usual, machine)))
    return "It differs too much from the other hosts to compare its links with theirs.";
  return "";
}

/// A rail's NIC is below the same PCIe switch as a GPU: others may be for storage. A host without GPUs has
/// rails of InfiniBand only.
bool is_of_a_rail(const Machine& machine, int nic) {
  if (machine.gpus.empty()) return machine.nics[index(nic)].kind == NicKind::infiniband;
  for (int gpu = 0; gpu < static_cast<int>(machine.gpus.size()); ++gpu) {
    const auto path = find_path(machine, {DeviceKind::gpu, gpu}, {DeviceKind::nic, nic});
    if (path && (path->type == PathType::pix || path->type == PathType::pxb)) return true;
  }
  return false;
}

/// A NIC of one host that is down.
struct DownNic {
  bool is_fault = false;  // its probe says so
  bool is_odd = false;    // see add_odd_ones()
  std::string remark{};
};

/// By device and host.
using DownNics = std::map<std::string, std::map<std::string, DownNic>>;

/// NICs of rails that are down where at least three quarters of those like them are up: all hosts may have
/// that, as where a rail's switch is dead. An interface whose probe finds no fault may stand by in a bond, or
/// nobody has set it up: it does not count. Ports of InfiniBand and RoCE do.
void add_odd_ones(const Machine& machine, const std::vector<int>& of_rails, const std::string& host,
                  DownNics& found) {
  std::map<std::pair<std::string, NicKind>, std::vector<std::string>> down;
  std::map<std::pair<std::string, NicKind>, std::size_t> up;
  for (const int nic : of_rails) {
    const Nic& one = machine.nics[index(nic)];
    const bool is_verbs = one.kind == NicKind::infiniband || !one.system_guid.empty();
    if (one.up())
      ++up[{one.model, one.kind}];
    else if (is_verbs || (found.contains(one.name) && found.at(one.name).contains(host)))
      down[{one.model, one.kind}].push_back(one.name);
  }
  for (const auto& [model, names] : down) {
    if (up[model] < 3 * names.size()) continue;
    for (const std::string& name : names) {
      DownNic& nic = found[name][host];
      nic.is_odd = true;
      nic.remark = fmt::format(
          "{} is down, and {} NICs like it are up: see to its cable, and to the switch of its rail", name,
          up[model]);
    }
  }
}

DownNics down_nics(const Inventory& inventory) {
  DownNics found;
  for (std::size_t group = 0; group < inventory.members.size(); ++group) {
    const Machine& machine = inventory.cluster.groups[group].machine;
    std::vector<int> of_rails;
    for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic)
      if (!machine.nics[index(nic)].ports.empty() && is_of_a_rail(machine, nic)) of_rails.push_back(nic);
    for (const HostIdentity& host : inventory.members[group]) {
      for (const LinkFault& fault : host.link_faults)
        if (fault.is_port) found[fault.device].try_emplace(host.name, DownNic{true, false, fault.remark});
      add_odd_ones(machine, of_rails, host.name, found);
    }
  }
  return found;
}

/// Whether the probes of all hosts, of two at least, call it a fault: then it is no single host's.
bool is_fault_of_all(const Inventory& inventory, const std::map<std::string, DownNic>& of_hosts) {
  std::size_t hosts = 0;
  for (const std::vector<HostIdentity>& members : inventory.members) hosts += members.size();
  return hosts > 1 && of_hosts.size() == hosts &&
         std::ranges::all_of(of_hosts, [](const auto& one) { return one.second.is_fault; });
}

/// Without ports that are down on all hosts.
Faults find_faults(const Inventory& inventory, const std::string& like, const DownNics& down) {
  Faults faults;
  for (const std::vector<HostIdentity>& members : inventory.members)
    for (const HostIdentity& host : members)
      for (const LinkFault& fault : host.link_faults)
        if (!fault.is_port || !is_fault_of_all(inventory, down.at(fault.device)))
          faults.try_emplace({host.name, fault.device}, fault.remark);
  const std::vector<HostKind> kinds = kinds_of(inventory.cluster);
  const auto machine = [&](const HostKind& kind) -> const Machine& {
    return inventory.cluster.groups[index(kind.groups.front())].machine;
  };
  const Machine ideal = like.empty() ? Machine{} : machine_like(like);
  const std::string beside = like.empty() ? "" : fmt::format(", beside '{}'", like);
  for (const HostKind& kind : kinds) {
    const std::vector<std::string> hosts = names_of(inventory, kind.groups);
    if (!like.empty())
      add_differences(with_nics_named_as(ideal, machine(kind)), machine(kind), kToleranceOfLike, hosts,
                      beside, faults);
    // Hosts of two kinds are no measure for each other.
    if (!is_another_kind(differences(machine(kinds.front()), machine(kind))))
      add_differences(machine(kinds.front()), machine(kind), kUsualTolerance, hosts, "", faults);
  }
  return faults;
}

/// Of "gpu0 runs on 8 of 16 lanes: see whether it sits well", what is found and what to do.
std::pair<std::string, std::string> apart(const std::string& remark) {
  const std::size_t at = std::max(remark.rfind(": see ") + 1, remark.rfind("; see ") + 1);
  if (at == 0) return {remark + ".", "Check its cable, its slot and the switch's port."};
  return {remark.substr(0, at - 1) + ".", "S" + remark.substr(at + 2) + "."};
}

/// A row of a NIC on several hosts.
CheckRow row_of_nic(const Checking& checking, const std::string& device,
                    const std::vector<std::string>& hosts) {
  CheckRow row = row_of(checking, kName, {});
  row.hosts = hosts;
  row.subject = fmt::format("{} of {}", device,
                            hosts.size() == checking.site.hosts.size() ? "all hosts" : names_text(hosts));
  return row;
}

/// A rail that is down on all hosts is the rail's fault, and no host's. What else is down, and is nobody's
/// fault, is shown: it may be for storage, or be disabled.
std::vector<CheckRow> rows_of_down(const Checking& checking, const DownNics& down, Faults& faults) {
  std::vector<CheckRow> rows;
  for (const auto& [device, of_hosts] : down) {
    const bool is_dead_rail =
        is_fault_of_all(checking.site.inventory, of_hosts) &&
        std::ranges::all_of(of_hosts, [](const auto& one) { return one.second.is_odd; });
    std::vector<std::string> hosts;
    for (const auto& one : of_hosts) {
      if (is_dead_rail) faults.erase({one.first, device});
      if (!faults.contains({one.first, device})) hosts.push_back(one.first);
    }
    if (hosts.empty()) continue;
    CheckRow& row = rows.emplace_back(row_of_nic(checking, device, hosts));
    row.verdict = is_dead_rail ? Verdict::fail : Verdict::shown;
    std::tie(row.why, row.remedy) = apart(of_hosts.at(hosts.front()).remark);
    if (!is_dead_rail) row.remedy = "If it is to be used, check its cable and the switch's port.";
  }
  return rows;
}

std::vector<CheckRow> run(const Checking& checking) {
  const Inventory& inventory = checking.site.inventory;
  const DownNics down = down_nics(inventory);
  Faults faults = find_faults(inventory, checking.options.like, down);
  std::vector<CheckRow> rows = rows_of_down(checking, down, faults);
  const std::string_view other =
      std::ranges::find(rows, Verdict::fail, &CheckRow::verdict) == rows.end() ? "" : "other ";
  const auto add = [&](const std::string& host, const std::string& device) -> CheckRow& {
    CheckRow& row = rows.emplace_back(row_of(checking, kName, {}));
    row.hosts = {host};
    row.subject = device.empty() ? host : fmt::format("{} of {}", device, host);
    return row;
  };
  for (const auto& [where, remark] : faults) {
    CheckRow& row = add(where.first, where.second);
    row.verdict = Verdict::fail;
    std::tie(row.why, row.remedy) = apart(remark);
  }
  for (std::size_t group = 0; group < inventory.cluster.groups.size(); ++group) {
    const Machine& machine = inventory.cluster.groups[group].machine;
    if (machine.gpus.empty() && machine.nics.empty()) continue;
    const std::string unknown = why_unknown(inventory, machine, checking.options.like);
    for (const std::string& host : names_of(inventory, {static_cast<int>(group)})) {
      const bool has_fault =
          std::ranges::any_of(faults, [&](const auto& fault) { return fault.first.first == host; });
      if (has_fault) continue;
      CheckRow& row = add(host, "");
      if (!unknown.empty()) {
        row.verdict = Verdict::missing;
        row.why = unknown;
        row.remedy = "Install the driver's library there (NVML), or give the --like of a good host.";
        continue;
      }
      row.verdict = Verdict::pass;
      row.why = fmt::format("No {}fault in the links of {} and {}.", other,
                            counted(static_cast<std::int64_t>(machine.gpus.size()), "GPU"),
                            counted(static_cast<std::int64_t>(machine.nics.size()), "NIC"));
    }
  }
  for (const UnprobedHost& host : inventory.unprobed) {
    CheckRow& row = add(host.name, "");
    row.verdict = Verdict::error;
    row.why = fmt::format("It could not be probed: {}.", host.why);
    row.remedy = "See what 'polyring probe' says there.";
  }
  if (!rows.empty()) return rows;
  CheckRow& row = add("", "");
  row.hosts.clear();
  row.verdict = Verdict::skipped;
  row.why = "No host shows a GPU or a NIC.";
  return rows;
}

int turns(const Site&, const CheckOptions&) { return 0; }

}  // namespace

const Check kLinks{
    kName, "PCIe links, NVLinks and ports that are down or slower than they could be", turns, {}, run};

}  // namespace polyring
