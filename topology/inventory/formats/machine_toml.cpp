#include "topology/inventory/formats/machine_toml.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/names.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "topology/described.hpp"
#include "topology/inventory/formats/nvidia_smi.hpp"
#include "topology/presets.hpp"
#include "topology/what_if.hpp"

namespace polyring {
namespace {

/// toml++ follows the parts of a dotted key by recursion: no more of them than a stack holds.
constexpr Bytes kLargest{32 << 10};
constexpr std::size_t kLongestText = 200;

/// What is done with the value of a key, which is named as in "gpus.count".
using Setter = std::function<void(const std::string& name, const toml::node& value)>;

struct Key {
  std::string name;
  Setter set;
};

/// A word of the file, and what it stands for.
template <typename Value>
struct Word {
  std::string text;
  Value value;
};

class Reader {
 public:
  explicit Reader(const std::string& file) {
    description_.file = file;
    description_.name = std::filesystem::path(file).stem().string();
  }

  MachineDescription read(std::string_view text) {
    const std::string& file = description_.file;
    if (text.size() > kLargest.value)
      usage_error("'{}' has {} bytes, and a described machine at most {}; give another file", file,
                  text.size(), to_text(kLargest));
    toml::table root;
    try {
      root = toml::parse(text, std::string_view(file));
    } catch (const toml::parse_error& error) {
      usage_error("{}:{}: this is not TOML: {}; see docs/machines.md for what a described machine looks like",
                  file, error.source().begin.line, error.description());
    }
    read_table(root, "", keys());
    return std::move(description_);
  }

 private:
  /// `place`: a key or a value of the file.
  std::string where(const auto& place) const {
    return fmt::format("{}:{}", description_.file, place.source().begin.line);
  }

  [[noreturn]] void wrong(const auto& place, const std::string& what) const {
    usage_error("{}: {}", where(place), what);
  }

  void read_table(const toml::table& table, const std::string& above, const std::vector<Key>& keys) const {
    for (const auto& [key, value] : table) {
      const std::string name(key.str());
      const auto known = std::ranges::find(keys, name, &Key::name);
      if (known != keys.end()) {
        known->set(above.empty() ? name : above + "." + name, value);
        continue;
      }
      std::vector<std::string> names;
      for (const Key& one : keys) names.push_back(one.name);
      wrong(key, unknown_name(above.empty() ? "key" : "key of " + above, name.substr(0, 64), names));
    }
  }

  Setter table(std::vector<Key> keys, std::string example) const {
    return [this, keys = std::move(keys), example = std::move(example)](const std::string& name,
                                                                        const toml::node& value) {
      const toml::table* table = value.as_table();
      if (table == nullptr) wrong(value, fmt::format("'{}' must be a table, such as {}", name, example));
      read_table(*table, name, keys);
    };
  }

  /// A number stands for the table's first key.
  Setter number_or_table(std::vector<Key> keys, std::string example) const {
    const Setter first = keys.front().set;
    const Setter all = table(std::move(keys), std::move(example));
    return [first, all](const std::string& name, const toml::node& value) {
      (value.is_integer() ? first : all)(name, value);
    };
  }

  Setter number(std::optional<Stated<int>>& to) const {
    return [this, &to](const std::string& name, const toml::node& value) {
      const auto stated = value.value_exact<std::int64_t>();
      if (!stated) wrong(value, fmt::format("'{}' must be a whole number, such as 8", name));
      // described_cluster() says which numbers make sense.
      if (*stated < std::numeric_limits<int>::min() || *stated > std::numeric_limits<int>::max())
        wrong(value, fmt::format("'{}' is {}, which no machine has; give one such as 8", name, *stated));
      to = {static_cast<int>(*stated), where(value)};
    };
  }

  Setter ratio(std::optional<Stated<double>>& to) const {
    return [this, &to](const std::string& name, const toml::node& value) {
      auto stated = value.is_number() ? value.value<double>() : std::nullopt;
      if (value.is_string())
        stated = parsed(value, [&] { return parse_oversubscription(text_of(name, value, "2:1"), name); });
      if (!stated) wrong(value, fmt::format("'{}' must be a ratio, such as 2 or \"2:1\"", name));
      to = {*stated, where(value)};
    };
  }

  /// Text that is not blank.
  std::string text_of(const std::string& name, const toml::node& value, std::string_view example) const {
    const auto stated = value.value_exact<std::string>();
    if (!stated) wrong(value, fmt::format("'{}' must be text, such as \"{}\"", name, example));
    if (stated->find_first_not_of(" \t\r\n") == std::string::npos)
      wrong(value, fmt::format("'{}' is empty; write such as \"{}\", or leave it out", name, example));
    if (stated->size() > kLongestText)
      wrong(value,
            fmt::format("'{}' has {} characters; give at most {}", name, stated->size(), kLongestText));
    return printable_line(*stated);
  }

  Setter text(std::optional<Stated<std::string>>& to, std::string example) const {
    return [this, &to, example = std::move(example)](const std::string& name, const toml::node& value) {
      to = {text_of(name, value, example), where(value)};
    };
  }

  /// What `parse` returns; its Errors with the place before them.
  auto parsed(const toml::node& value, const auto& parse) const -> decltype(parse()) {
    try {
      return parse();
    } catch (const Error& error) {
      wrong(value, error.what());
    }
  }

  /// Text that `parse` understands, such as parse_bandwidth.
  template <typename Value>
  Setter quantity(std::optional<Stated<Value>>& to, Value (*parse)(std::string_view, std::string_view),
                  std::string example) const {
    return
        [this, &to, parse, example = std::move(example)](const std::string& name, const toml::node& value) {
          const std::string stated = text_of(name, value, example);
          to = {parsed(value, [&] { return parse(stated, name); }), where(value)};
        };
  }

  template <typename Value>
  Setter word(std::optional<Stated<Value>>& to, std::vector<Word<Value>> words) const {
    return [this, &to, words = std::move(words)](const std::string& name, const toml::node& value) {
      const std::string stated = text_of(name, value, words.front().text);
      std::vector<std::string> known;
      for (const Word<Value>& one : words) {
        known.push_back(one.text);
        if (one.text == lower_case(stated)) to = {one.value, where(value)};
      }
      if (!known_name(stated, known)) wrong(value, unknown_name(name, stated.substr(0, 64), known));
    };
  }

  /// NVLink's version, "xgmi", "pcie" or "none".
  void set_nvlink(const std::string& name, const toml::node& value) {
    const auto version = value.value_exact<std::int64_t>();
    if (version) {
      description_.gpus.nvlink = {std::to_string(*version), where(value)};
      return;
    }
    const std::vector<std::string> known{"none", "pcie", "xgmi"};
    const auto stated = value.value_exact<std::string>();
    const auto word = stated ? known_name(*stated, known) : std::nullopt;
    if (!word)
      wrong(value,
            fmt::format("'{}' must be NVLink's version, such as 4, or \"xgmi\", \"pcie\" or \"none\"", name));
    description_.gpus.nvlink = {*word == "pcie" ? "none" : *word, where(value)};
  }

  std::vector<Key> keys() {
    return {
        {"name", [this](const std::string& name,
                        const toml::node& value) { description_.name = text_of(name, value, "my cluster"); }},
        {"base", text(description_.base, "dgx-h100")},
        {"hosts", number(description_.hosts)},
        {"sockets", sockets()},
        {"gpus", gpus()},
        {"nics", nics()},
        {"pcie", pcie()},
        {"fabric", fabric()}};
  }

  Setter sockets() {
    MachineDescription::Sockets& to = description_.sockets;
    return number_or_table({{"count", number(to.count)},
                            {"model", text(to.model, "AMD EPYC 7742")},
                            {"cores", number(to.cores)},
                            {"memory", quantity(to.memory, &parse_bytes, "512G")},
                            {"memory_bandwidth", quantity(to.memory_bandwidth, &parse_bandwidth, "205GB/s")},
                            {"bus", quantity(to.bus, &parse_bandwidth, "96GB/s")}},
                           "{ count = 2, cores = 64 }, or a number");
  }

  Setter gpus() {
    MachineDescription::Gpus& to = description_.gpus;
    return table({{"count", number(to.count)},
                  {"product", text(to.product, "H100-SXM")},
                  {"nvlink", [this](const auto& name, const auto& value) { set_nvlink(name, value); }},
                  {"topology", word<GpuTopology>(to.topology, {{"switch", GpuTopology::switches},
                                                               {"mesh", GpuTopology::mesh},
                                                               {"cube-mesh", GpuTopology::cube_mesh},
                                                               {"pairs", GpuTopology::pairs}})},
                  {"links", number(to.links)}},
                 R"({ count = 8, product = "H100-SXM" })");
  }

  Setter nics() {
    MachineDescription::Nics& to = description_.nics;
    std::vector<Word<NicProtocol>> kinds;
    for (const std::string& name : nic_protocols()) kinds.push_back({name, parse_nic_protocol(name)});
    return table({{"count", number(to.count)},
                  {"per_switch", number(to.per_switch)},
                  {"rate", text(to.rate, "400Gb/s")},
                  {"kind", word<NicProtocol>(to.kind, kinds)},
                  {"where", word<NicPlace>(
                                to.place, {{"switch", NicPlace::pci_switch}, {"socket", NicPlace::socket}})}},
                 R"({ count = 8, rate = "400Gb/s", kind = "infiniband" })");
  }

  Setter pcie() {
    MachineDescription::Pcie& to = description_.pcie;
    return number_or_table({{"generation", number(to.generation)}, {"switches", number(to.switches)}},
                           "{ generation = 5, switches = 4 }, or a generation");
  }

  Setter fabric() {
    MachineDescription::Network& to = description_.fabric;
    return table({{"hosts_per_leaf", number(to.hosts_per_leaf)},
                  {"oversubscription", ratio(to.oversubscription)},
                  {"latency", quantity(to.latency, &parse_seconds, "1.7us")},
                  {"spine_latency", quantity(to.spine_latency, &parse_seconds, "0.2us")}},
                 "{ hosts_per_leaf = 32, oversubscription = 2 }");
  }

  MachineDescription description_;
};

/// Files that another option takes.
void refuse_other_formats(std::string_view text, const std::string& file) {
  const std::string_view content = without_byte_order_mark(text);
  const auto first = content.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return;
  if (content[first] == '{' || content[first] == '<' || is_topo_matrix(content))
    usage_error("'{}' is not TOML but what a probe or another program wrote; give it with: --from {}", file,
                file);
}

}  // namespace

bool is_machine_file(std::string_view text) {
  return lower_case(text).ends_with(".toml") || text.find('/') != std::string_view::npos;
}

Cluster parse_machine_toml(std::string_view text, const std::string& file) {
  return described_cluster(Reader(file).read(text));
}

Cluster machine_named(const std::string& preset_or_file) {
  return is_machine_file(preset_or_file) ? read_machine_toml(preset_or_file) : preset(preset_or_file, 1);
}

Cluster read_machine_toml(const std::filesystem::path& file) {
  const std::string text = read_text_file(file);
  refuse_other_formats(text, file.string());
  return parse_machine_toml(text, file.string());
}

}  // namespace polyring
