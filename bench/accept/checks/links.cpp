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

Faults find_faults(const Inventory& inventory, const std::string& like) {
  Faults faults;
  for (const std::vector<HostIdentity>& members : inventory.members)
    for (const HostIdentity& host : members)
      for (const LinkFault& fault : host.link_faults)
        faults.try_emplace({host.name, fault.device}, fault.remark);
  const std::vector<HostKind> kinds = kinds_of(inventory.cluster);
  const auto machine = [&](const HostKind& kind) -> const Machine& {
    return inventory.cluster.groups[index(kind.groups.front())].machine;
  };
  const Machine ideal = like.empty() ? Machine{} : machine_like(like);
  const std::string beside = like.empty() ? "" : fmt::format(", beside '{}'", like);
  for (const HostKind& kind : kinds) {
    const std::vector<std::string> hosts = names_of(inventory, kind.groups);
    if (!like.empty()) add_differences(ideal, machine(kind), kToleranceOfLike, hosts, beside, faults);
    // Hosts of two kinds are no measure for each other.
    if (!is_another_kind(differences(machine(kinds.front()), machine(kind))))
      add_differences(machine(kinds.front()), machine(kind), kUsualTolerance, hosts, "", faults);
  }
  return faults;
}

/// Of "gpu0 runs on 8 of 16 lanes: see whether it sits well", what is found and what to do.
std::pair<std::string, std::string> apart(const std::string& remark) {
  const std::size_t at = std::max(remark.rfind(": see ") + 1, remark.rfind("; see ") + 1);
  if (at == 0) return {remark + ".", "See to its cable, its slot and the switch's port."};
  return {remark.substr(0, at - 1) + ".", "S" + remark.substr(at + 2) + "."};
}

std::vector<CheckRow> run(const Checking& checking) {
  const Inventory& inventory = checking.site.inventory;
  const Faults faults = find_faults(inventory, checking.options.like);
  std::vector<CheckRow> rows;
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
    for (const std::string& host : names_of(inventory, {static_cast<int>(group)})) {
      const bool has_fault =
          std::ranges::any_of(faults, [&](const auto& fault) { return fault.first.first == host; });
      if (has_fault) continue;
      CheckRow& row = add(host, "");
      row.verdict = Verdict::pass;
      row.why = fmt::format("No fault in the links of {} and {}.",
                            counted(static_cast<std::int64_t>(machine.gpus.size()), "GPU"),
                            counted(static_cast<std::int64_t>(machine.nics.size()), "NIC"));
    }
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
