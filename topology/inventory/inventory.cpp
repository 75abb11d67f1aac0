#include "topology/inventory/inventory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/index.hpp"
#include "topology/host_names.hpp"

namespace polyring {
namespace {

/// Tells which machines are equal: the first of each kind stands for it.
class KindIndex {
 public:
  /// The number of the machine's kind. The machine must outlive the index.
  int kind_of(const Machine& machine) {
    const auto [entry, is_new] = by_form_.try_emplace(normal_form(machine), -1);
    if (!is_new) return entry->second;
    const auto equal = std::ranges::find_if(
        first_, [&](const Machine* first) { return differences(*first, machine).empty(); });
    entry->second = static_cast<int>(equal - first_.begin());
    if (equal == first_.end()) first_.push_back(&machine);
    return entry->second;
  }

  const Machine& first(int kind) const { return *first_[index(kind)]; }

 private:
  std::vector<const Machine*> first_;
  std::unordered_map<std::string, int> by_form_;
};

/// Sentences about hosts, those about the same thing together, in the order of their first hosts.
class SharedSentences {
 public:
  void add(const Difference& difference, const std::vector<std::string>& hosts) {
    auto& of_difference = hosts_[difference];
    if (of_difference.empty()) order_.push_back(difference);
    of_difference.insert(of_difference.end(), hosts.begin(), hosts.end());
  }

  std::vector<NamedDifference> take() {
    std::vector<NamedDifference> result;
    for (const Difference& difference : order_) {
      std::vector<std::string>& hosts = hosts_[difference];
      std::string text = sentence(difference, hosts);
      result.push_back({std::move(hosts), std::move(text)});
    }
    return result;
  }

 private:
  std::map<Difference, std::vector<std::string>> hosts_;
  std::vector<Difference> order_;
};

/// The names of a group's hosts; of hosts without names, one that says how many they are.
std::vector<std::string> names(const HostGroup& group, const std::vector<HostIdentity>& members) {
  std::vector<std::string> names;
  for (const HostIdentity& host : members) names.push_back(host.name);
  if (members.empty()) {
    names.push_back(group.count == 1 ? group.machine.name
                                     : fmt::format("{} like {}", group.count, group.machine.name));
  }
  return names;
}

/// The remarks of the hosts that become one group.
class Remarks {
 public:
  void add(const std::vector<std::string>& remarks, const std::vector<std::string>& hosts, int count) {
    hosts_ += count;
    for (const std::string& remark : remarks) {
      const auto known = std::ranges::find(of_, remark, &Entry::remark);
      Entry& entry = known == of_.end() ? of_.emplace_back(Entry{remark, {}, 0}) : *known;
      entry.hosts.insert(entry.hosts.end(), hosts.begin(), hosts.end());
      entry.count += count;
    }
  }

  std::vector<std::string> take() const {
    std::vector<std::string> result;
    for (const Entry& entry : of_) {
      result.push_back(entry.count == hosts_ ? entry.remark
                                             : fmt::format("{}: {}", names_text(entry.hosts), entry.remark));
    }
    return result;
  }

 private:
  struct Entry {
    std::string remark;
    std::vector<std::string> hosts;
    int count = 0;
  };
  std::vector<Entry> of_;
  int hosts_ = 0;
};

/// A note on what is too little to make a kind of its own.
std::vector<std::string> notes_on(std::vector<NamedDifference> slight) {
  constexpr std::size_t kMost = 4;
  const std::size_t rest = slight.size() > kMost ? slight.size() - kMost : 0;
  slight.resize(slight.size() - rest);
  std::vector<std::string> notes;
  for (const NamedDifference& difference : slight)
    notes.push_back(fmt::format("taken as equal although {}", difference.sentence));
  if (rest > 0) {
    notes.push_back(fmt::format("taken as equal although there are {} more differences of less than {:.0f} %",
                                rest, 100 * kUsualTolerance));
  }
  return notes;
}

/// Groups under construction: each is joined by what follows it and is equal.
class Merger {
 public:
  void add(const HostGroup& group, const std::vector<HostIdentity>& members) {
    const int kind = kinds_.kind_of(group.machine);
    const Machine& first = kinds_.first(kind);
    const std::vector<std::string> hosts = names(group, members);
    if (&first != &group.machine) {
      for (const Difference& slight : differences(first, group.machine, 0)) slight_.add(slight, hosts);
    }
    if (groups_.empty() || kind != last_kind_) {
      finish_remarks();
      groups_.push_back({group.machine, 0});
      members_.emplace_back();
    }
    const bool known = !members.empty() && members_.back().size() == index(groups_.back().count);
    groups_.back().count += group.count;
    if (known) {
      members_.back().insert(members_.back().end(), members.begin(), members.end());
    } else {
      members_.back().clear();
    }
    remarks_.add(group.machine.remarks, hosts, group.count);
    last_kind_ = kind;
  }

  Inventory take() {
    finish_remarks();
    Inventory result;
    result.cluster.groups = std::move(groups_);
    result.members = std::move(members_);
    result.notes = notes_on(slight_.take());
    return result;
  }

 private:
  void finish_remarks() {
    if (!groups_.empty()) groups_.back().machine.remarks = remarks_.take();
    remarks_ = {};
  }

  KindIndex kinds_;
  int last_kind_ = -1;
  std::vector<HostGroup> groups_;
  std::vector<std::vector<HostIdentity>> members_;
  Remarks remarks_;
  SharedSentences slight_;
};

/// Whether it is not of all hosts: what is said of a machine has one colon.
bool names_hosts(const std::string& asked) { return asked.find(": ") != asked.rfind(": "); }

/// What was asked for all hosts, and for some.
std::vector<std::string> merged_asked(const std::vector<Inventory>& parts) {
  Remarks of_parts;
  std::vector<std::string> named;
  for (const Inventory& part : parts) {
    std::vector<std::string> of_all;
    for (const std::string& sentence : part.asked)
      (names_hosts(sentence) ? named : of_all).push_back(sentence);
    std::vector<int> groups(part.cluster.groups.size());
    std::iota(groups.begin(), groups.end(), 0);
    of_parts.add(of_all, names_of(part, groups), part.cluster.host_count());
  }
  std::vector<std::string> asked = of_parts.take();
  asked.insert(asked.end(), named.begin(), named.end());
  return asked;
}

/// "node01 and 13 more".
std::string cluster_name(const Inventory& inventory) {
  const int more = inventory.cluster.host_count() - 1;
  const std::string& first = inventory.cluster.host(0).name;
  return more == 0 ? first : fmt::format("{} and {} more", first, more);
}

}  // namespace

HostIdentity identity_of(const Machine& machine) {
  HostIdentity identity{.name = machine.name, .link_faults = machine.link_faults};
  for (const Nic& nic : machine.nics) {
    for (const Port& port : nic.ports) {
      if (!port.guid.empty()) identity.port_guids.push_back(port.guid);
    }
  }
  return identity;
}

Inventory inventory_of(Machine machine) { return inventory_of(cluster_of(std::move(machine), 1)); }

Inventory inventory_of(Cluster cluster) {
  Inventory inventory;
  for (const HostGroup& group : cluster.groups) {
    inventory.members.emplace_back();
    if (group.count == 1) inventory.members.back().push_back(identity_of(group.machine));
  }
  inventory.cluster = std::move(cluster);
  return inventory;
}

Inventory merged(std::vector<Inventory> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  Merger merger;
  for (const Inventory& part : parts) {
    for (std::size_t group = 0; group < part.cluster.groups.size(); ++group)
      merger.add(part.cluster.groups[group], part.members[group]);
  }
  Inventory result = merger.take();
  result.asked = merged_asked(parts);
  for (Inventory& part : parts) {
    std::ranges::move(part.unprobed, std::back_inserter(result.unprobed));
    std::ranges::move(part.notes, std::back_inserter(result.notes));
  }
  if (result.cluster.groups.empty()) return result;
  result.cluster.name = cluster_name(result);
  result.cluster.fabric = std::move(parts.front().cluster.fabric);
  result.cluster.validate();
  return result;
}

std::vector<HostKind> kinds_of(const Cluster& cluster) {
  KindIndex index_of_kinds;
  std::vector<HostKind> kinds;
  for (std::size_t group = 0; group < cluster.groups.size(); ++group) {
    const int kind = index_of_kinds.kind_of(cluster.groups[group].machine);
    if (index(kind) == kinds.size()) kinds.emplace_back();
    kinds[index(kind)].groups.push_back(static_cast<int>(group));
    kinds[index(kind)].count += cluster.groups[group].count;
  }
  const auto commonest = std::ranges::max_element(kinds, {}, &HostKind::count);
  if (commonest != kinds.end()) std::rotate(kinds.begin(), commonest, commonest + 1);
  return kinds;
}

Cluster by_kind(const Cluster& cluster) {
  Cluster result = cluster;
  result.groups.clear();
  for (const HostKind& kind : kinds_of(cluster))
    result.groups.push_back({cluster.groups[index(kind.groups.front())].machine, kind.count});
  return result;
}

std::vector<std::string> names_of(const Inventory& inventory, const std::vector<int>& groups) {
  std::vector<std::string> result;
  for (const int group : groups) {
    const std::vector<std::string> of_group =
        names(inventory.cluster.groups[index(group)], inventory.members[index(group)]);
    result.insert(result.end(), of_group.begin(), of_group.end());
  }
  return result;
}

void add_asked(Inventory& inventory, const std::function<std::string(const Machine&)>& say) {
  std::vector<std::pair<std::string, std::vector<int>>> said;  // with the groups
  for (std::size_t group = 0; group < inventory.cluster.groups.size(); ++group) {
    const std::string sentence = say(inventory.cluster.groups[group].machine);
    const auto known = std::ranges::find(said, sentence, [](const auto& entry) { return entry.first; });
    auto& entry = known == said.end() ? said.emplace_back(sentence, std::vector<int>{}) : *known;
    entry.second.push_back(static_cast<int>(group));
  }
  for (const auto& [sentence, groups] : said) {
    if (sentence.empty()) continue;
    inventory.asked.push_back(said.size() == 1
                                  ? sentence
                                  : fmt::format("{}: {}", names_text(names_of(inventory, groups)), sentence));
  }
}

bool is_another_kind(const std::vector<Difference>& differences) {
  constexpr std::size_t kMostToRead = 8;
  return differences.size() > kMostToRead;
}

namespace {

/// `other_kinds`: of hosts that are another kind, this.
std::vector<NamedDifference> differences_of(const Inventory& inventory, bool other_kinds) {
  const std::vector<HostKind> kinds = kinds_of(inventory.cluster);
  SharedSentences sentences;
  for (std::size_t kind = 1; kind < kinds.size(); ++kind) {
    const auto machine = [&](const HostKind& of) -> const Machine& {
      return inventory.cluster.groups[index(of.groups.front())].machine;
    };
    const std::vector<std::string> hosts = names_of(inventory, kinds[kind].groups);
    const std::vector<Difference> found = differences(machine(kinds.front()), machine(kinds[kind]));
    if (is_another_kind(found)) {
      if (!other_kinds) continue;
      sentences.add({Difference::Kind::has, fmt::format("{} differences from {}: another kind of host",
                                                        found.size(), machine(kinds.front()).name)},
                    hosts);
      continue;
    }
    for (const Difference& difference : found) sentences.add(difference, hosts);
  }
  return sentences.take();
}

}  // namespace

std::vector<NamedDifference> differences_of(const Inventory& inventory) {
  return differences_of(inventory, true);
}

std::vector<NamedDifference> small_differences_of(const Inventory& inventory) {
  return differences_of(inventory, false);
}

Inventory reordered(const Inventory& inventory, const std::vector<int>& order) {
  const std::vector<HostGroup>& groups = inventory.cluster.groups;
  std::vector<int> kind(groups.size());
  const std::vector<HostKind> kinds = kinds_of(inventory.cluster);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    for (const int group : kinds[i].groups) kind[index(group)] = static_cast<int>(i);
  }
  std::vector<std::pair<int, int>> places;  // of each host: its group, and its index in there
  for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
    for (int i = 0; i < groups[index(group)].count; ++i) places.emplace_back(group, i);
  }
  Inventory result = inventory;
  result.cluster.groups.clear();
  result.members.clear();
  int last_kind = -1;
  for (const int host : order) {
    const auto [group, place] = places[index(host)];
    if (kind[index(group)] != last_kind) {
      result.cluster.groups.push_back({groups[index(group)].machine, 0});
      result.members.emplace_back();
      last_kind = kind[index(group)];
    }
    ++result.cluster.groups.back().count;
    result.members.back().push_back(inventory.members[index(group)][index(place)]);
  }
  return result;
}

}  // namespace polyring
