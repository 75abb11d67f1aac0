#include "topology/inventory/probe/odd_ones.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "topology/path.hpp"
#include "topology/rank_nics.hpp"

namespace polyring::probe {
namespace {

/// Whether so few of so many may be a fault, and not the way in which the host was built.
bool are_odd(std::size_t few, std::size_t all) {
  return all >= 3 && few > 0 && few <= std::max<std::size_t>(1, all / 4);
}

/// Of the device's link to a PCIe switch or a package; 0 where it has none, or it is unknown.
Bandwidth pcie_bandwidth(const Machine& machine, DeviceId device) {
  for (const Link& link : machine.links) {
    if (link.kind == LinkKind::pcie && link.from == device) return link.bandwidth;
  }
  return {};
}

using Rates = std::vector<std::pair<std::string, Bandwidth>>;  // of devices of one model, by name

/// Those that are slower than most: the commonest rate is that of the others.
void add_slow(const Rates& rates,
              const std::function<std::string(const std::string&, Bandwidth, Bandwidth, std::size_t)>& remark,
              std::vector<OddOne>& found) {
  std::map<Bandwidth, std::size_t> count;
  for (const auto& [name, rate] : rates) ++count[rate];
  const auto usual = std::ranges::max_element(count, {}, &std::pair<const Bandwidth, std::size_t>::second);
  if (usual == count.end()) return;
  // Firmware rounds, and so do files.
  const auto is_slow = [&](Bandwidth rate) { return rate < 0.95 * usual->first; };
  const auto slow = static_cast<std::size_t>(
      std::ranges::count_if(rates, [&](const auto& one) { return is_slow(one.second); }));
  if (!are_odd(slow, rates.size())) return;
  for (const auto& [name, rate] : rates) {
    if (is_slow(rate)) found.push_back({name, remark(name, rate, usual->first, usual->second)});
  }
}

void add_slow_gpus(const Machine& machine, std::vector<OddOne>& found) {
  std::map<std::string, Rates> by_model;
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    const Bandwidth rate = pcie_bandwidth(machine, {DeviceKind::gpu, static_cast<int>(i)});
    if (rate.known()) by_model[machine.gpus[i].model].emplace_back(machine.gpus[i].name, rate);
  }
  const auto remark = [](const std::string& name, Bandwidth rate, Bandwidth usual, std::size_t others) {
    return fmt::format(
        "{}'s PCIe link carries {}, those of {} GPUs like it {}: see whether it sits well, and its riser",
        name, to_text(rate), others, to_text(usual));
  };
  for (const auto& [model, rates] : by_model) add_slow(rates, remark, found);
}

bool is_below_one_switch(const Machine& machine, DeviceId gpu, DeviceId nic) {
  const auto path = find_path(machine, gpu, nic);
  return path && (path->type == PathType::pix || path->type == PathType::pxb);
}

void add_slow_nics(const Machine& machine, std::vector<OddOne>& found) {
  std::map<std::pair<std::string, NicKind>, Rates> by_model;
  for (const int nic : usable_nics(machine)) {
    const Nic& one = machine.nics[index(nic)];
    if (one.up() && one.bandwidth().known())
      by_model[{one.model, one.kind}].emplace_back(one.name, one.bandwidth());
  }
  const auto remark = [](const std::string& name, Bandwidth rate, Bandwidth usual, std::size_t others) {
    return fmt::format("{} carries {}, {} NICs like it {}: see its cable and the switch's port", name,
                       to_text(rate), others, to_text(usual));
  };
  for (const auto& [what, rates] : by_model) add_slow(rates, remark, found);
}

void add_gpus_without_nic(const Machine& machine, std::vector<OddOne>& found) {
  std::vector<std::string> without;
  for (int gpu = 0; gpu < static_cast<int>(machine.gpus.size()); ++gpu) {
    bool any = false;
    for (int nic = 0; nic < static_cast<int>(machine.nics.size()) && !any; ++nic)
      any = is_below_one_switch(machine, {DeviceKind::gpu, gpu}, {DeviceKind::nic, nic});
    if (!any) without.push_back(machine.gpus[index(gpu)].name);
  }
  if (!are_odd(without.size(), machine.gpus.size())) return;
  for (const std::string& name : without) {
    found.push_back(
        {name,
         fmt::format("{} has no NIC below its PCIe switches, and {} of {} GPUs have one: see whether "
                     "an adapter is missing",
                     name, machine.gpus.size() - without.size(), machine.gpus.size()),
         false});
  }
}

}  // namespace

std::vector<OddOne> odd_ones(const Machine& machine) {
  std::vector<OddOne> found;
  add_slow_gpus(machine, found);
  add_slow_nics(machine, found);
  add_gpus_without_nic(machine, found);
  return found;
}

}  // namespace polyring::probe
