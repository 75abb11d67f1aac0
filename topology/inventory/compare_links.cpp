#include "topology/inventory/compare_links.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "topology/link_names.hpp"
#include "topology/shared_links.hpp"

namespace polyring {
namespace {

bool holds_others(DeviceId id) { return id.kind == DeviceKind::package || id.kind == DeviceKind::pci_switch; }

/// The PCIe links seen from a device: the bandwidth, and the other end.
using PcieLinks = std::map<DeviceId, std::vector<std::pair<Bandwidth, DeviceId>>>;

/// The way from a device up to a package.
struct Chain {
  DeviceId top;
  std::vector<Bandwidth> speeds;  // of the device's own link first
  std::vector<DeviceId> switches;
};

class PcieTree {
 public:
  explicit PcieTree(const Machine& machine) {
    for (const Link& link : machine.links) {
      if (link.kind != LinkKind::pcie) continue;
      links_[link.from].emplace_back(link.bandwidth, link.to);
      links_[link.to].emplace_back(link.bandwidth, link.from);
    }
    std::vector<DeviceId> level;
    for (int i = 0; i < static_cast<int>(machine.packages.size()); ++i)
      level.push_back({DeviceKind::package, i});
    for (int depth = 0; !level.empty(); ++depth) level = settle(level, depth);
  }

  /// One for each PCIe link of the device, in the order of packages.
  std::vector<Chain> chains(DeviceId device) const {
    std::vector<Chain> chains;
    for (const auto& [speed, above] : of(device)) {
      if (!holds_others(above) || !depth_.contains(above)) continue;
      Chain chain{above, {speed}, {}};
      while (chain.top.kind == DeviceKind::pci_switch) climb(chain);
      chains.push_back(std::move(chain));
    }
    std::ranges::sort(chains, {},
                      [](const Chain& chain) { return std::pair(chain.top, chain.switches.size()); });
    return chains;
  }

  /// What else hangs on the switch next to the device.
  std::set<DeviceId> siblings(DeviceId device) const {
    std::set<DeviceId> found;
    for (const Chain& chain : chains(device)) {
      if (chain.switches.empty()) continue;
      for (const auto& [speed, other] : of(chain.switches.front())) {
        if (!holds_others(other) && other != device) found.insert(other);
      }
    }
    return found;
  }

 private:
  const std::vector<std::pair<Bandwidth, DeviceId>>& of(DeviceId device) const {
    static const std::vector<std::pair<Bandwidth, DeviceId>> kNone;
    const auto found = links_.find(device);
    return found == links_.end() ? kNone : found->second;
  }

  std::vector<DeviceId> settle(const std::vector<DeviceId>& level, int depth) {
    std::vector<DeviceId> next;
    for (const DeviceId device : level) {
      if (!depth_.try_emplace(device, depth).second) continue;
      for (const auto& [speed, other] : of(device)) {
        if (other.kind == DeviceKind::pci_switch && !depth_.contains(other)) next.push_back(other);
      }
    }
    return next;
  }

  /// A switch that has a depth has a neighbour of less.
  void climb(Chain& chain) const {
    const auto& around = of(chain.top);
    const auto up = std::ranges::find_if(around, [&](const auto& link) {
      const auto depth = depth_.find(link.second);
      return depth != depth_.end() && depth->second < depth_.at(chain.top);
    });
    chain.switches.push_back(chain.top);
    chain.speeds.push_back(up->first);
    chain.top = up->second;
  }

  PcieLinks links_;
  std::map<DeviceId, int> depth_;  // packages have 0
};

using Neighbours = std::map<DeviceId, std::set<DeviceId>>;

/// The NICs that share a PCIe link with each NIC.
Neighbours functions_beside(const Machine& machine) {
  const std::vector<int> physical = physical_links(machine);
  std::map<int, std::set<DeviceId>> nics;
  for (std::size_t i = 0; i < physical.size(); ++i) {
    if (machine.links[i].from.kind == DeviceKind::nic) nics[physical[i]].insert(machine.links[i].from);
  }
  Neighbours beside;
  for (const auto& [link, functions] : nics) {
    for (const DeviceId nic : functions) {
      beside[nic].insert(functions.begin(), functions.end());
      beside[nic].erase(nic);
    }
  }
  return beside;
}

std::string speed_in_words(Bandwidth bandwidth) {
  return bandwidth.known() ? to_text(bandwidth) : "an unknown speed";
}

/// Compares the PCIe of one device; the first thing that differs says enough.
class PcieComparison {
 public:
  PcieComparison(const Machine& usual, const Machine& other, const DeviceMap& counterparts, double tolerance)
      : usual_(usual),
        other_(other),
        counterparts_(counterparts),
        tolerance_(tolerance),
        usual_tree_(usual),
        other_tree_(other),
        usual_functions_(functions_beside(usual)),
        other_functions_(functions_beside(other)) {}

  /// Without a text where there is none.
  Difference difference(DeviceId in_usual, DeviceId in_other) const {
    const std::vector<Chain> expected = usual_tree_.chains(in_usual);
    const std::vector<Chain> found = other_tree_.chains(in_other);
    const std::string name = usual_.device_name(in_usual);
    if (tops(usual_, expected) != tops(other_, found)) {
      return own(fmt::format("{} hangs on {}, not on {}", name, tops(other_, found), tops(usual_, expected)));
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t switches = found[i].switches.size();
      if (switches != expected[i].switches.size()) {
        return own(fmt::format("{} has {} PCIe switch{} above it, not {}", name, switches,
                               switches == 1 ? "" : "es", expected[i].switches.size()));
      }
      for (std::size_t step = 0; step < found[i].speeds.size(); ++step) {
        const Bandwidth is = found[i].speeds[step];
        const Bandwidth should = expected[i].speeds[step];
        if (nearly(should.value, is.value, tolerance_)) continue;
        return own(fmt::format("{} at {}, not {}",
                               step == 0 ? fmt::format("{} hangs on PCIe", name)
                                         : fmt::format("PCIe switch above {} hangs", name),
                               speed_in_words(is), speed_in_words(should)),
                   is_less(should, is) ? name : "");
      }
    }
    const std::string beside =
        sharing(name, "PCIe switch", usual_tree_.siblings(in_usual), other_tree_.siblings(in_other));
    return own(beside.empty() ? sharing(name, "PCIe link", of(usual_functions_, in_usual),
                                        of(other_functions_, in_other))
                              : beside);
  }

 private:
  static Difference own(std::string text, std::string link_of = "") {
    return {Difference::Kind::own, std::move(text), std::move(link_of)};
  }

  static std::string tops(const Machine& machine, const std::vector<Chain>& chains) {
    std::vector<std::string> names;
    for (const Chain& chain : chains) names.push_back(machine.device_name(chain.top));
    return names.empty() ? "no PCIe" : fmt::format("{}", fmt::join(names, " and "));
  }

  static std::set<DeviceId> of(const Neighbours& neighbours, DeviceId device) {
    const auto found = neighbours.find(device);
    return found == neighbours.end() ? std::set<DeviceId>{} : found->second;
  }

  std::string sharing(const std::string& name, std::string_view what, const std::set<DeviceId>& in_usual,
                      const std::set<DeviceId>& in_other) const {
    std::set<std::string> expected;
    for (const DeviceId sibling : in_usual) {
      const bool is_there =
          std::ranges::any_of(counterparts_, [&](const auto& entry) { return entry.second == sibling; });
      if (is_there) expected.insert(usual_.device_name(sibling));
    }
    std::set<std::string> found;
    for (const DeviceId sibling : in_other) {
      const auto counterpart = counterparts_.find(sibling);
      if (counterpart != counterparts_.end()) found.insert(usual_.device_name(counterpart->second));
    }
    if (found == expected) return {};
    const auto text = [](const std::set<std::string>& names) {
      return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, " and "));
    };
    return fmt::format("{} shares its {} with {}, not with {}", name, what, text(found), text(expected));
  }

  const Machine& usual_;
  const Machine& other_;
  const DeviceMap& counterparts_;
  double tolerance_;
  PcieTree usual_tree_;
  PcieTree other_tree_;
  Neighbours usual_functions_;
  Neighbours other_functions_;
};

/// Two devices of the usual host, and what joins them.
struct Joint {
  LinkKind kind;
  DeviceId a, b;
  auto operator<=>(const Joint&) const = default;
};

/// What each joint carries.
struct Strength {
  double bandwidth = 0;  // 0 when it is unknown
  int links = 0;         // as Link::count
};
using Joints = std::map<Joint, Strength>;

/// The joints of a machine in the names of the usual one. `counterpart` has an end of a link or nothing.
template <typename Counterpart>
Joints joints_of(const Machine& machine, Counterpart counterpart) {
  Joints joints;
  for (const Link& link : machine.links) {
    if (link.kind == LinkKind::pcie) continue;
    const std::optional<DeviceId> from = counterpart(link.from);
    const std::optional<DeviceId> to = counterpart(link.to);
    if (!from || !to) continue;
    Strength& sum = joints[{link.kind, std::min(*from, *to), std::max(*from, *to)}];
    sum.bandwidth += link.bandwidth.value;
    sum.links += link.count;
  }
  return joints;
}

std::string_view people_say(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return "NVLink";
    case LinkKind::xgmi:
      return "xGMI";
    case LinkKind::c2c:
      return "NVLink-C2C";
    case LinkKind::pcie:
      return "PCIe";
    case LinkKind::socket_bus:
      return "bus";
    case LinkKind::memory:
      return "way to memory";
  }
  return "link";
}

std::string number_text(long number) {
  constexpr std::array kWords{"no",  "one",   "two",   "three", "four", "five",
                              "six", "seven", "eight", "nine",  "ten"};
  return number < static_cast<long>(kWords.size()) ? kWords[static_cast<std::size_t>(number)]
                                                   : fmt::format("{}", number);
}

/// How many NVLinks fewer (below 0: more), where both are whole numbers of them.
std::optional<long> missing_nvlinks(const Machine& usual, double should, double is) {
  if (usual.gpus.empty() || should <= 0 || is <= 0) return std::nullopt;
  const Bandwidth one = one_nvlink(usual.gpus.front());
  if (!one.known()) return std::nullopt;
  const double links_should = should / one.value;
  const double links_is = is / one.value;
  constexpr double kRounding = 0.01;
  if (std::abs(links_should - std::round(links_should)) > kRounding ||
      std::abs(links_is - std::round(links_is)) > kRounding) {
    return std::nullopt;
  }
  return std::lround(links_should) - std::lround(links_is);
}

/// Where neither says how fast they are, their numbers may differ.
bool about_equal(const Strength& should, const Strength& is, double tolerance) {
  if (should.bandwidth > 0 || is.bandwidth > 0) return nearly(should.bandwidth, is.bandwidth, tolerance);
  return should.links == is.links || should.links == 0 || is.links == 0;
}

std::string changed(const Machine& usual, const Joint& joint, const Strength& strength_should,
                    const Strength& strength_is) {
  const std::string between =
      fmt::format("between {} and {}", usual.device_name(joint.a), usual.device_name(joint.b));
  const double should = strength_should.bandwidth;
  const double is = strength_is.bandwidth;
  if (should == 0 && is == 0)
    return fmt::format("{} x {} {}, not {}", strength_is.links, people_say(joint.kind), between,
                       strength_should.links);
  const auto missing =
      joint.kind == LinkKind::nvlink ? missing_nvlinks(usual, should, is) : std::optional<long>();
  if (missing) {
    const long number = std::labs(*missing);
    return fmt::format("{} NVLink{} {} {} ({}, not {})", number_text(number), number == 1 ? "" : "s",
                       *missing > 0 ? "less" : "more", between, to_text(Bandwidth{is}),
                       to_text(Bandwidth{should}));
  }
  return fmt::format("{} of {} {}, not {}", people_say(joint.kind), speed_in_words({is}), between,
                     speed_in_words({should}));
}

/// Whether the other one is weaker, as far as both are known.
bool is_weaker(const Strength& should, const Strength& is) {
  if (should.bandwidth > 0 || is.bandwidth > 0)
    return is_less(Bandwidth{should.bandwidth}, Bandwidth{is.bandwidth});
  return is.links < should.links;
}

/// `links_known`: a link that is not found is not there.
void compare_joints(const Machine& usual, const Joints& expected, const Joints& found_there, double tolerance,
                    bool links_known, std::vector<Difference>& found) {
  std::map<LinkKind, int> there;
  std::map<LinkKind, int> lost;
  for (const auto& [joint, strength] : found_there) ++there[joint.kind];
  for (const auto& [joint, should] : expected) {
    const std::string ends = fmt::format("{} and {}", usual.device_name(joint.a), usual.device_name(joint.b));
    const auto is = found_there.find(joint);
    if (is == found_there.end()) {
      // The first one that is missing may speak for all.
      const bool none_left = there[joint.kind] == 0;
      if (none_left && lost[joint.kind]++ > 0) continue;
      found.push_back({Difference::Kind::has,
                       none_left ? fmt::format("no {} at all", people_say(joint.kind))
                                 : fmt::format("no {} between {}", people_say(joint.kind), ends),
                       !links_known ? ""
                       : none_left  ? std::string(people_say(joint.kind))
                                    : ends});
    } else if (!about_equal(should, is->second, tolerance)) {
      found.push_back({Difference::Kind::has, changed(usual, joint, should, is->second),
                       is_weaker(should, is->second) ? ends : ""});
    }
  }
  for (const auto& [joint, is] : found_there) {
    if (expected.contains(joint)) continue;
    found.push_back(
        {Difference::Kind::has, fmt::format("{} between {} and {} ({}), where others have none",
                                            people_say(joint.kind), usual.device_name(joint.a),
                                            usual.device_name(joint.b), speed_in_words({is.bandwidth}))});
  }
}

}  // namespace

bool nearly(double usual, double other, double tolerance) {
  return std::abs(usual - other) <= tolerance * std::max(std::abs(usual), std::abs(other));
}

void compare_links(const Machine& usual, const Machine& other, const DeviceMap& counterparts,
                   double tolerance, std::vector<Difference>& found) {
  const PcieComparison pcie(usual, other, counterparts, tolerance);
  std::set<DeviceId> present;  // those of the usual host that the other has too
  for (const auto& [in_other, in_usual] : counterparts) {
    present.insert(in_usual);
    if (in_usual.kind != DeviceKind::gpu && in_usual.kind != DeviceKind::nic) continue;
    Difference difference = pcie.difference(in_usual, in_other);
    if (!difference.text.empty()) found.push_back(std::move(difference));
  }
  const Joints expected = joints_of(
      usual, [&](DeviceId end) { return present.contains(end) ? std::optional(end) : std::nullopt; });
  const Joints is = joints_of(other, [&](DeviceId end) {
    const auto counterpart = counterparts.find(end);
    return counterpart == counterparts.end() ? std::nullopt : std::optional(counterpart->second);
  });
  compare_joints(usual, expected, is, tolerance, other.gpu_links_known, found);
}

}  // namespace polyring
