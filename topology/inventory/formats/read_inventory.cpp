#include "topology/inventory/formats/read_inventory.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "topology/host_names.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/read_cluster.hpp"
#include "topology/inventory/probe.hpp"
#include "topology/inventory/probe/trial.hpp"

namespace polyring {
namespace {

bool is_json(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

/// In a child process, where hwloc may crash: our JSON of what the file holds. Throws for other formats.
std::string as_json(const std::filesystem::path& file) {
  std::string text = read_text_file(file);
  if (is_json(text)) return text;
  return probe_json(cluster_of(parse_untried_hwloc_xml(text, file.string()), 1));
}

void note_duplicates(Inventory& inventory) {
  std::set<std::string> seen;
  std::vector<std::string> twice;
  for (const auto& members : inventory.members) {
    for (const HostIdentity& host : members) {
      if (!seen.insert(host.name).second) twice.push_back(host.name);
    }
  }
  if (twice.empty()) return;
  inventory.notes.push_back(fmt::format("several files describe {}, which {} counted each time",
                                        names_text(twice), twice.size() == 1 ? "is" : "are"));
}

Inventory read_one(const std::filesystem::path& file) {
  const std::string text = read_text_file(file);
  if (is_json(text)) return parse_inventory_json(text, file.string());
  return inventory_of(read_cluster(file));
}

}  // namespace

Inventory read_inventory(std::span<const std::filesystem::path> files) {
  if (files.size() == 1) return read_one(files.front());
  constexpr unsigned kMostSeconds = 20;  // for one file, as for one alone
  const auto answers = probe::trial_answers(
      files.size(), [&](std::size_t i) { return as_json(files[i]); }, kMostSeconds);
  std::vector<Inventory> parts;
  for (std::size_t i = 0; i < files.size(); ++i) {
    // Read alone, a file of another format is read, and one that is damaged says why.
    parts.push_back(answers[i] ? parse_inventory_json(*answers[i], files[i].string()) : read_one(files[i]));
  }
  Inventory inventory = merged(std::move(parts));
  note_duplicates(inventory);
  return inventory;
}

}  // namespace polyring
