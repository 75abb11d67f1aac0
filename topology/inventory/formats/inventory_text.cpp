#include "topology/inventory/formats/inventory_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "topology/host_names.hpp"
#include "topology/inventory/formats/probe_text.hpp"

namespace polyring {
namespace {

std::string hosts_text(const Inventory& inventory, const std::vector<HostKind>& kinds) {
  const std::vector<std::string> names = names_of(inventory, kinds.front().groups);
  std::string out = "\nhosts\n";
  const int equal = kinds.front().count;
  out += equal == 1 ? fmt::format("  {}\n", names_text(names))
                    : fmt::format("  {} equal: {}\n", equal, names_text(names));
  for (const NamedDifference& difference : differences_of(inventory))
    out += fmt::format("  {}\n", difference.sentence);
  return out;
}

}  // namespace

Cluster pictured(const Inventory& inventory) {
  Cluster cluster = by_kind(inventory.cluster);
  const Machine usual = cluster.groups.front().machine;
  std::erase_if(cluster.groups, [&](const HostGroup& group) {
    return &group != &cluster.groups.front() && !is_another_kind(differences(usual, group.machine));
  });
  return cluster;
}

std::vector<std::string> not_pictured(const Inventory& inventory) {
  std::vector<std::string> sentences;
  for (const NamedDifference& difference : small_differences_of(inventory))
    sentences.push_back(difference.sentence);
  return sentences;
}

std::string not_pictured_text(const Inventory& inventory) {
  std::string out;
  for (const std::string& sentence : not_pictured(inventory))
    out += fmt::format("{}  {}\n", out.empty() ? "\nnot shown, as it differs little\n" : "", sentence);
  return out;
}

std::string asked_text(const Inventory& inventory) {
  std::string out;
  for (const std::string& sentence : inventory.asked)
    out += fmt::format("{}  {}\n", out.empty() ? "\nas asked for\n" : "", sentence);
  return out;
}

std::string inventory_text(const Inventory& inventory) {
  const std::vector<HostKind> kinds = kinds_of(inventory.cluster);
  std::string out;
  if (!kinds.empty()) out = probe_text(pictured(inventory), inventory.cluster);
  const bool known_one_by_one =
      std::ranges::any_of(inventory.members, [](const auto& members) { return !members.empty(); });
  if (inventory.cluster.host_count() > 1 && known_one_by_one) out += hosts_text(inventory, kinds);
  if (!inventory.unprobed.empty()) out += "\nnot probed\n";
  for (const UnprobedHost& host : inventory.unprobed) out += fmt::format("  {}: {}\n", host.name, host.why);
  if (!inventory.places.empty()) out += "\nleaf switches\n";
  for (const std::string& place : inventory.places) out += fmt::format("  {}\n", place);
  out += asked_text(inventory);
  if (!inventory.notes.empty()) out += "\nnotes\n";
  for (const std::string& note : inventory.notes) out += fmt::format("  {}\n", note);
  return out;
}

}  // namespace polyring
