#include "reports/differences.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "reports/clocks.hpp"
#include "reports/not_comparable.hpp"

namespace polyring {
namespace {

using Value = std::optional<std::string>;  // nothing: not recorded
using Json = nlohmann::json;

constexpr std::size_t kLongestValue = 60;
/// CPUs that other programs used: less is noise.
constexpr double kNotableCpus = 0.25;

bool is_imported(const ResultFile& result) {
  const auto& rows = collective_rows(result);
  return !rows.empty() && rows.front().source == Source::imported;
}

/// Collects what is known of each run, in the order in which it is shown.
class Facts {
 public:
  explicit Facts(std::span<const ComparedRun> runs) : runs_(runs) {}

  /// `value_of` a run.
  template <typename ValueOf>
  void add(const std::string& what, const ValueOf& value_of) {
    std::vector<Value> values;
    for (const ComparedRun& run : runs_) values.push_back(value_of(run));
    add_values(what, values);
  }

  /// A number of a run; those that differ by `tolerance` at most are not told.
  template <typename NumberOf>
  void add_number(const std::string& what, double tolerance, const char* unit, const NumberOf& number_of) {
    std::vector<std::optional<double>> numbers;
    double least = 0;
    double most = 0;
    bool any = false;
    for (const ComparedRun& run : runs_) {
      const std::optional<double> number = number_of(run);
      numbers.push_back(number);
      if (!number) continue;
      least = any ? std::min(least, *number) : *number;
      most = any ? std::max(most, *number) : *number;
      any = true;
    }
    if (most - least <= tolerance) return;
    std::vector<Value> values;
    for (const std::optional<double>& number : numbers)
      values.push_back(number ? Value(fmt::format("{:.2f}{}", *number, unit)) : std::nullopt);
    add_values(what, values);
  }

  void add_values(const std::string& what, const std::vector<Value>& values) {
    std::set<std::string> different;
    std::size_t known = 0;
    for (const Value& value : values) {
      if (!value) continue;
      ++known;
      different.insert(*value);
    }
    if (known == 0) return;
    if (known == 1 && values.size() > 1) {
      if (!different.begin()->empty()) result_.recorded_in_one.push_back(what);
    } else if (different.size() == 1) {
      if (!different.begin()->empty())
        result_.same.push_back(what + " " + printable_line(*different.begin(), kLongestValue));
    } else {
      RunDifference& difference = result_.differing.emplace_back(RunDifference{what, {}});
      for (const Value& value : values) {
        const std::string text = value ? printable_line(*value, kLongestValue) : "?";
        difference.values.push_back(text.empty() ? "-" : text);
      }
    }
  }

  void add_same(const std::string& what) { result_.same.push_back(what); }
  /// That there is more of a kind.
  void add_more(const std::string& what) {
    result_.differing.push_back({what, std::vector<std::string>(runs_.size(), "…")});
  }

  std::span<const ComparedRun> runs() const { return runs_; }
  RunDifferences result() && { return std::move(result_); }

 private:
  std::span<const ComparedRun> runs_;
  RunDifferences result_;
};

/// The texts that rows of a run give, each once.
template <typename TextOf>
std::string texts_of(const ComparedRun& run, const TextOf& text_of) {
  std::vector<std::string> texts;
  for (const ResultFile& result : run.results)
    for (const CollectiveRow& row : collective_rows(result)) {
      std::string text = text_of(result, row);
      if (!text.empty() && std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
    }
  return fmt::format("{}", fmt::join(texts, ", "));
}

const ResultFile& first_of(const ComparedRun& run) { return run.results.front(); }

std::string timing_text(const CollectiveRow& row) {
  switch (row.timing.value_or(TimingMethod::isolated)) {
    case TimingMethod::isolated:
      return "isolated calls";
    case TimingMethod::osu:
      return "calls after barriers, as OSU";
    case TimingMethod::back_to_back:
      return "calls back to back";
    case TimingMethod::blocking:
      return "calls one after the other";
    case TimingMethod::graph:
      return "calls of a CUDA graph";
  }
  return "";
}

std::string statistic_text(const ResultFile& result, const CollectiveRow& row) {
  if (!row.time_us.samples.empty()) return fmt::format("medians of {}", row.time_us.samples.size());
  return fmt::format("{} without samples", statistic_of(result));
}

// ---- where it ran

Value hosts_text(const ComparedRun& run) {
  std::vector<std::string> hosts;
  for (const RankHost& place : first_of(run).placement)
    if (std::ranges::find(hosts, place.host) == hosts.end()) hosts.push_back(place.host);
  if (hosts.empty()) return std::nullopt;
  constexpr std::size_t kShown = 4;
  const std::size_t more = hosts.size() > kShown ? hosts.size() - kShown : 0;
  hosts.resize(hosts.size() - more);
  return fmt::format("{}{}", fmt::join(hosts, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

Value host_count_text(const ComparedRun& run) {
  std::set<std::string_view> hosts;
  for (const RankHost& place : first_of(run).placement) hosts.insert(place.host);
  return hosts.empty() ? std::nullopt : Value(std::to_string(hosts.size()));
}

/// "host after host, 4 each"
Value placement_text(const ComparedRun& run) {
  const auto& placement = first_of(run).placement;
  if (placement.empty()) return std::nullopt;
  std::map<std::string_view, int> ranks;
  std::size_t changes = 0;
  for (std::size_t i = 0; i < placement.size(); ++i) {
    ++ranks[placement[i].host];
    changes += i > 0 && placement[i].host != placement[i - 1].host ? 1 : 0;
  }
  const auto [least, most] = std::ranges::minmax_element(ranks, {}, [](const auto& of) { return of.second; });
  const std::string each = least->second == most->second
                               ? fmt::format("{} a host", least->second)
                               : fmt::format("{} to {} a host", least->second, most->second);
  if (ranks.size() == 1) return each;
  if (changes + 1 == ranks.size()) return each + ", host after host";
  return each + (changes + 1 == placement.size() ? ", hosts by turns" : ", hosts mixed");
}

/// Of all hosts of a run.
template <typename Number>
std::optional<double> most_of(const ComparedRun& run, const Number& number) {
  const auto& conditions = first_of(run).conditions;
  if (!conditions || conditions->empty()) return std::nullopt;
  double most = 0;
  for (const HostConditions& host : *conditions) most = std::max(most, number(host));
  return most;
}

template <typename TextOf>
Value of_conditions(const ComparedRun& run, const TextOf& text_of) {
  const auto& conditions = first_of(run).conditions;
  if (!conditions || conditions->empty()) return std::nullopt;
  std::vector<std::string> texts;
  for (const HostConditions& host : *conditions) {
    const std::string text = text_of(host);
    if (!text.empty() && std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  }
  return if_any(fmt::format("{}", fmt::join(texts, ", ")));
}

void add_clocks(Facts& facts) {
  std::vector<Value> values;
  std::optional<Clocks> first;
  std::size_t known = 0;
  bool same = true;
  for (const ComparedRun& run : facts.runs()) {
    const auto& conditions = first_of(run).conditions;
    const std::optional<Clocks> clocks = conditions ? clocks_of(*conditions) : std::nullopt;
    values.push_back(clocks ? Value(clocks->text()) : std::nullopt);
    if (!clocks) continue;
    ++known;
    if (!first) first = clocks;
    same = same && first->is_like(*clocks);
  }
  if (known > 1 && same)
    facts.add_same("CPU clock " + first->text());
  else
    facts.add_values("CPU clock", values);
}

void add_conditions(Facts& facts) {
  facts.add("CPUs of a rank", [](const ComparedRun& run) {
    return of_conditions(run, [](const HostConditions& host) {
      const std::string some = host.least_cpus_of_rank == host.most_cpus_of_rank
                                   ? std::to_string(host.least_cpus_of_rank)
                                   : fmt::format("{} to {}", host.least_cpus_of_rank, host.most_cpus_of_rank);
      return fmt::format("{} of {}", some, host.cpus);
    });
  });
  add_clocks(facts);
  facts.add("CPU governor", [](const ComparedRun& run) {
    return of_conditions(run, [](const HostConditions& host) { return host.governor; });
  });
  facts.add("CPU limit", [](const ComparedRun& run) {
    return of_conditions(run, [](const HostConditions& host) {
      return host.cpu_limit ? fmt::format("{} CPUs", *host.cpu_limit) : "none";
    });
  });
  const auto number = [&](const char* what, double tolerance, const char* unit,
                          double HostConditions::*member) {
    facts.add_number(what, tolerance, unit, [member](const ComparedRun& run) {
      return most_of(run, [member](const HostConditions& host) { return host.*member; });
    });
  };
  number("used by other programs", kNotableCpus, " CPUs", &HostConditions::other_cpus);
  number("stolen by a hypervisor", kNotableCpus, " CPUs", &HostConditions::stolen_cpus);
  number("throttled for", 0.01, " s", &HostConditions::throttled_s);
}

// ---- what ran

/// The names that any of the maps of the runs has.
template <typename MapOf>
std::set<std::string> keys_of(const Facts& facts, const MapOf& map_of) {
  std::set<std::string> keys;
  for (const ComparedRun& run : facts.runs())
    for (const auto& [key, value] : map_of(first_of(run))) keys.insert(key);
  return keys;
}

void add_versions(Facts& facts) {
  facts.add("polyring", [](const ComparedRun& run) { return if_any(first_of(run).polyring_version); });
  facts.add("commit", [](const ComparedRun& run) { return if_any(first_of(run).commit); });
  const auto versions = [](const ResultFile& result) -> const auto& { return result.versions; };
  for (const std::string& key : keys_of(facts, versions)) {
    facts.add(key, [&](const ComparedRun& run) {
      const auto found = first_of(run).versions.find(key);
      return found == first_of(run).versions.end() ? std::nullopt : Value(found->second);
    });
  }
}

void add_environment(Facts& facts) {
  const auto environment = [](const ResultFile& result) -> const auto& { return result.environment; };
  for (const std::string& key : keys_of(facts, environment)) {
    facts.add(key, [&](const ComparedRun& run) -> Value {
      const ResultFile& result = first_of(run);
      const auto found = result.environment.find(key);
      if (found != result.environment.end()) return found->second;
      if (is_imported(result)) return std::nullopt;  // logs say nothing of it
      return "";
    });
  }
}

/// The words of a command line, without the result's name.
std::vector<std::string> words_of_command(const ComparedRun& run) {
  std::vector<std::string> kept;
  bool is_name = false;
  for (const std::string& word : split(first_of(run).command, ' ')) {
    const bool names_next = word == "-J" || word == "--output_file" || word == "--output";
    if (!is_name && !names_next && !word.empty()) kept.push_back(word);
    is_name = names_next;
  }
  return kept;
}

/// Of each command line the words that others have not, and the options whose values these are.
void add_commands(Facts& facts) {
  std::vector<std::vector<std::string>> commands;
  for (const ComparedRun& run : facts.runs()) commands.push_back(words_of_command(run));
  const auto in_all = [&](const std::string& word) {
    return std::ranges::all_of(commands, [&](const auto& command) {
      return command.empty() || std::ranges::find(command, word) != command.end();
    });
  };
  std::vector<Value> values;
  for (const auto& command : commands) {
    std::vector<std::string> own;
    for (std::size_t i = 0; i < command.size(); ++i) {
      const bool option_of_own =
          command[i].starts_with('-') && i + 1 < command.size() && !in_all(command[i + 1]);
      const bool value_of_own =
          i > 0 && command[i - 1].starts_with('-') && !command[i].starts_with('-') && !in_all(command[i - 1]);
      if (!in_all(command[i]) || option_of_own || value_of_own) own.push_back(command[i]);
    }
    values.push_back(command.empty() ? std::nullopt : Value(fmt::format("{}", fmt::join(own, " "))));
  }
  facts.add_values("command", values);
}

/// "2x2 direct+ring, 1 lane, over …": how an algorithm ran.
std::string plan_text(const CollectiveRow& row) {
  std::vector<std::string> parts;
  if (!row.dims.empty()) parts.push_back(row.patterns.empty() ? row.dims : row.dims + " " + row.patterns);
  if (row.lanes > 0) parts.push_back(counted(row.lanes, "lane"));
  if (row.chunk_bytes > 0) parts.push_back(fmt::format("{} chunks", to_text(Bytes{row.chunk_bytes})));
  if (row.orders) parts.push_back("orders " + *row.orders);
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// The rows of an algorithm in a run, by size and placement.
std::map<std::pair<std::uint64_t, bool>, const CollectiveRow*> rows_by_size(const ComparedRun& run,
                                                                            const std::string& collective,
                                                                            const std::string& algorithm) {
  std::map<std::pair<std::uint64_t, bool>, const CollectiveRow*> rows;
  for (const ResultFile& result : run.results)
    if (result.collective == collective)
      for (const CollectiveRow& row : collective_rows(result))
        if (row.algorithm == algorithm) rows.emplace(std::pair(row.size_bytes, row.in_place), &row);
  return rows;
}

/// The plans of an algorithm at the first size at which they differ, of runs that all have it.
void add_plan(Facts& facts, const std::string& collective, const std::string& algorithm) {
  std::vector<std::map<std::pair<std::uint64_t, bool>, const CollectiveRow*>> rows;
  for (const ComparedRun& run : facts.runs()) rows.push_back(rows_by_size(run, collective, algorithm));
  for (const auto& [at, row] : rows.front()) {
    std::vector<Value> plans;
    std::set<std::string> different;
    for (const auto& of_run : rows) {
      const auto found = of_run.find(at);
      plans.push_back(found == of_run.end() ? std::nullopt : if_any(plan_text(*found->second)));
      if (plans.back()) different.insert(*plans.back());
    }
    if (different.size() < 2) continue;
    facts.add_values(fmt::format("{}'s plan at {}", algorithm, to_text(Bytes{at.first})), plans);
    return;
  }
}

void add_plans(Facts& facts) {
  std::set<std::pair<std::string, std::string>> all;
  for (const ResultFile& result : facts.runs().front().results)
    for (const CollectiveRow& row : collective_rows(result)) all.emplace(result.collective, row.algorithm);
  for (const auto& [collective, algorithm] : all) add_plan(facts, collective, algorithm);
}

// ---- the machine

/// The values of a JSON text by their paths, as "hosts/0/nics/0/ports/0/GBps", without where they were read.
std::map<std::string, std::string> flat(const std::string& text) {
  std::map<std::string, std::string> values;
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return values;
  constexpr int kDeepest = 20;  // a probe's JSON has 6 levels
  const std::function<void(const Json&, const std::string&, int)> add =
      [&](const Json& part, const std::string& path, int depth) {
        if (depth > kDeepest) return;
        if (part.is_primitive()) {
          values[path] = part.is_string() ? part.get<std::string>() : part.dump();
          return;
        }
        std::size_t index = 0;
        for (auto item = part.begin(); item != part.end(); ++item, ++index) {
          const std::string key = part.is_object() ? item.key() : std::to_string(index);
          if (key == "citations" || key == "sources") continue;
          add(*item, path.empty() ? key : fmt::format("{}/{}", path, key), depth + 1);
        }
      };
  add(json, "", 0);
  return values;
}

void add_machine(Facts& facts) {
  constexpr std::size_t kShown = 5;
  std::vector<std::map<std::string, std::string>> machines;
  std::set<std::string> paths;
  for (const ComparedRun& run : facts.runs()) {
    const std::string& text = first_of(run).machine;
    machines.push_back(text == "null" ? std::map<std::string, std::string>{} : flat(text));
    for (const auto& [path, value] : machines.back()) paths.insert(path);
  }
  if (std::ranges::count_if(machines, [](const auto& machine) { return !machine.empty(); }) < 2) return;
  std::size_t differing = 0;
  for (const std::string& path : paths) {
    std::vector<Value> values;
    std::set<std::string> different;
    for (const auto& machine : machines) {
      const auto found = machine.find(path);
      values.push_back(machine.empty() ? std::nullopt : Value(found == machine.end() ? "" : found->second));
      if (values.back()) different.insert(*values.back());
    }
    if (different.size() > 1 && ++differing <= kShown) facts.add_values("machine " + path, values);
  }
  if (differing == 0) facts.add_same("machine");
  if (differing > kShown) facts.add_more(fmt::format("machine: {} more values", differing - kShown));
}

}  // namespace

RunDifferences differences_of(std::span<const ComparedRun> runs) {
  Facts facts(runs);
  const auto of_rows = [&](const char* what, const auto& text_of) {
    facts.add(what, [&](const ComparedRun& run) { return if_any(texts_of(run, text_of)); });
  };
  using Row = const CollectiveRow&;
  of_rows("collectives", [](const ResultFile& result, Row) { return result.collective; });
  of_rows("source", [](const ResultFile&, Row row) { return std::string(to_text(row.source)); });
  of_rows("algorithms", [](const ResultFile&, Row row) { return row.algorithm; });
  of_rows("ranks", [](const ResultFile&, Row row) { return std::to_string(row.ranks); });
  facts.add("hosts", host_count_text);
  facts.add("on", hosts_text);
  facts.add("placement", placement_text);
  of_rows("timing", [](const ResultFile&, Row row) { return timing_text(row); });
  of_rows("times", statistic_text);
  of_rows("types", [](const ResultFile&, Row row) { return row.dtype; });
  of_rows("operations", [](const ResultFile&, Row row) { return row.op == "none" ? "" : row.op; });
  of_rows("checked", [](const ResultFile&, Row row) { return std::string(row.wrong ? "yes" : "no"); });
  of_rows("run by", [](const ResultFile&, Row row) { return row.implementation; });
  add_plans(facts);
  add_versions(facts);
  add_environment(facts);
  add_conditions(facts);
  add_machine(facts);
  add_commands(facts);
  return std::move(facts).result();
}

std::vector<std::string> notes_of_runs(std::span<const ComparedRun> runs) {
  std::vector<std::pair<std::string, std::vector<std::string>>> notes;  // with the runs that have it
  for (const ComparedRun& run : runs) {
    for (const ResultFile& result : run.results) {
      for (const std::string& note : result.notes) {
        if (note.starts_with("Imported from ")) continue;
        auto found = std::ranges::find(notes, note, [](const auto& known) { return known.first; });
        if (found == notes.end()) found = notes.insert(notes.end(), {note, {}});
        if (std::ranges::find(found->second, run.label) == found->second.end())
          found->second.push_back(run.label);
      }
    }
  }
  std::vector<std::string> texts;
  for (const auto& [note, labels] : notes)
    texts.push_back(fmt::format("{}: {}", fmt::join(labels, ", "), printable_line(note)));
  return texts;
}

}  // namespace polyring
