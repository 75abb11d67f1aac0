#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/module.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "collectives/library/topology/build.hpp"
#include "collectives/library/topology/topology.hpp"
#include "collectives/runtime/hosts.hpp"

namespace polyring::library {
namespace {

constexpr const char* kVariable = "POLYRING_CLUSTER";
constexpr std::string_view kNone = "none";
/// What rules were measured for.
constexpr const char* kOneHost = "all ranks share the memory of one host";
/// Their driver is asked in a child process, which is no library's to start.
constexpr const char* kGpus = "only POLYRING_CLUSTER tells how GPUs are linked";

struct LoadedPlugin {
  TopologyPlugin* plugin = nullptr;
  std::string why_not;  // half a sentence
};

LoadedPlugin load() {
  LoadedPlugin loaded;
  const std::string path = module_path("POLYRING_TOPOLOGY_PLUGIN", kTopologyFile).string();
  const auto entry = reinterpret_cast<TopologyEntry>(load_module(path, kTopologyEntry, loaded.why_not));
  if (entry == nullptr) return loaded;
  loaded.plugin = entry(kTopologyBuild);
  if (loaded.plugin == nullptr) loaded.why_not = fmt::format("{} is of another build", path);
  return loaded;
}

const LoadedPlugin& plugin() {
  static const auto* const loaded = new LoadedPlugin(load());
  return *loaded;
}

std::string_view setting() {
  const char* const text = std::getenv(kVariable);
  return text == nullptr ? std::string_view{} : text;
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> exchanged(const Bootstrap& bootstrap, const std::string& own) {
  std::vector<std::string> all;
  for (const auto& bytes : bootstrap.allgather(std::as_bytes(std::span(own)))) all.push_back(text_of(bytes));
  return all;
}

/// What rank 0 was told to do.
enum class Kind : char { rules = 'r', probe = 'p', file = 'f', no_plugin = 'n', fault = 'x' };

struct Order {
  Kind kind = Kind::rules;
  std::string name;  // of the file
  std::string text;  // what it says, or why it cannot be read

  std::string message() const {
    return fmt::format("{}{}\n{}", static_cast<char>(kind), printable_line(name), text);
  }
};

Order order_of(const std::string& message) {
  const std::size_t end = message.find('\n');
  return {static_cast<Kind>(message.at(0)), message.substr(1, end - 1), message.substr(end + 1)};
}

Order own_order() {
  const std::string_view said = setting();
  if (said == kNone) return {};
  if (said.empty()) return {Kind::probe, {}, {}};
  const std::string name(said);
  if (plugin().plugin == nullptr) {
    return {Kind::no_plugin, name,
            fmt::format("{} names a file that only the plug-in for topologies reads, and {}; install it, "
                        "name it in POLYRING_TOPOLOGY_PLUGIN, or unset the variable",
                        kVariable, plugin().why_not)};
  }
  try {
    return {Kind::file, name, plugin().plugin->read(name)};
  } catch (const std::exception& error) {
    return {Kind::fault, name, fmt::format("{}: {}", kVariable, error.what())};
  }
}

/// What a rank knows of itself.
struct Presence {
  std::string why_no_plugin;
  std::string gpu;
  std::string host;  // the first rank's probe of it

  std::string message() const {
    return printable_line(why_no_plugin) + '\n' + printable_line(gpu) + '\n' + host;
  }
};

Presence presence_of(const std::string& message) {
  const std::size_t first = message.find('\n');
  const std::size_t second = message.find('\n', first + 1);
  return {message.substr(0, first), message.substr(first + 1, second - first - 1),
          message.substr(second + 1)};
}

Presence own_presence(const std::string& own_gpu, bool probes) {
  Presence own{plugin().why_not, own_gpu, {}};
  if (!probes || plugin().plugin == nullptr) return own;
  try {
    static const auto* const host = new std::string(plugin().plugin->probe());
    own.host = *host;
  } catch (const std::exception& error) {
    own.why_no_plugin = error.what();
  }
  return own;
}

Planning by_rules(const std::string& why) { return {nullptr, fmt::format("by rules, since {}", why)}; }

/// Nothing where the ranks of a host are not numbered one after another.
std::optional<JobRanks> job_of(const RankHosts& hosts, const std::vector<Presence>& all) {
  if (!std::ranges::is_sorted(hosts.of_rank)) return std::nullopt;
  JobRanks job{hosts.names, std::vector<HostRanks>(index(hosts.count()))};
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    HostRanks& host = job.ranks[index(hosts.of_rank[rank])];
    ++host.ranks;
    if (!all[rank].gpu.empty()) host.gpus.push_back(all[rank].gpu);
  }
  return job;
}

std::vector<std::string> probes_of(const RankHosts& hosts, const std::vector<Presence>& all) {
  std::vector<std::string> probes;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (static_cast<std::size_t>(hosts.of_rank[rank]) == probes.size()) probes.push_back(all[rank].host);
  }
  return probes;
}

Planning planned(const Order& order, const RankHosts& hosts, const std::vector<Presence>& all) {
  const bool from_file = order.kind == Kind::file;
  const auto lacks = [](const Presence& rank) { return !rank.why_no_plugin.empty(); };
  if (const auto rank = std::ranges::find_if(all, lacks); rank != all.end()) {
    const std::string who = ranks_text(std::vector{static_cast<int>(rank - all.begin())}, hosts);
    const std::string why = fmt::format("the topology cannot be read by {}: {}", who, rank->why_no_plugin);
    if (from_file) {
      throw AgreedError(ExitCode::not_available,
                        fmt::format("{} cannot be followed, since {}", kVariable, why));
    }
    return by_rules(why);
  }
  const bool on_gpus = std::ranges::any_of(all, [](const Presence& rank) { return !rank.gpu.empty(); });
  if (!on_gpus && hosts.count() == 1) return by_rules(kOneHost);
  if (on_gpus && !from_file) return by_rules(kGpus);
  const auto job = job_of(hosts, all);
  if (!job) return by_rules("the ranks of a host are not numbered one after another");
  const std::string what = from_file ? fmt::format("'{}'", order.name) : "the probe";
  std::vector<std::string> descriptions{order.text};
  if (!from_file) descriptions = probes_of(hosts, all);
  try {
    std::string why;
    auto planner = plugin().plugin->make_planner(descriptions, *job, what, why);
    if (!planner) return by_rules(why);
    return {std::move(planner), fmt::format("by the links that {} describes", what)};
  } catch (const Error& error) {
    if (!from_file) return by_rules(error.what());
    throw AgreedError(error.code(), fmt::format("{}: {}", kVariable, error.what()));
  }
}

}  // namespace

Planning plan_by_topology(const Bootstrap& bootstrap, const std::string& own_gpu) {
  if (bootstrap.size() == 1) return by_rules("one rank alone has no links");
  if (bootstrap.size() > kMostPlannedRanks)
    return by_rules(
        fmt::format("links between more than {} ranks take too long to price", kMostPlannedRanks));
  const bool decides = bootstrap.rank() == 0;
  const Order order = order_of(exchanged(bootstrap, decides ? own_order().message() : "").front());
  if (order.kind == Kind::no_plugin) throw AgreedError(ExitCode::not_available, order.text);
  if (order.kind == Kind::fault) throw AgreedError(ExitCode::usage, order.text);
  if (order.kind == Kind::rules) return by_rules(fmt::format("{} is {}", kVariable, kNone));
  const RankHosts hosts = find_hosts(bootstrap).hosts;
  const bool probes = order.kind == Kind::probe;
  if (probes && hosts.count() == 1) return by_rules(own_gpu.empty() ? kOneHost : kGpus);
  const bool first = hosts.neighbors(bootstrap.rank()).front() == bootstrap.rank();
  std::vector<Presence> all;
  const Presence own = own_presence(own_gpu, probes && first && own_gpu.empty());
  for (const std::string& message : exchanged(bootstrap, own.message())) all.push_back(presence_of(message));
  return planned(order, hosts, all);
}

}  // namespace polyring::library
