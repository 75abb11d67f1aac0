#include "bench/accept/baseline.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <span>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/statistics.hpp"
#include "base/text.hpp"
#include "bench/accept/site.hpp"
#include "reports/verdicts.hpp"
#include "topology/inventory/formats/probe_json.hpp"

namespace polyring {
namespace {

std::span<const CheckRow> rows_of(const ResultFile& result) {
  return std::get<std::vector<CheckRow>>(result.rows);
}

/// "8 ranks on 2 hosts".
std::string shape_of(const ResultFile& result) {
  std::map<std::string, int> ranks;
  for (const RankHost& place : result.placement) ++ranks[place.host];
  std::set<int> per_host;
  for (const auto& [host, count] : ranks) per_host.insert(count);
  std::string text =
      fmt::format("{} on {}", counted(static_cast<std::int64_t>(result.placement.size()), "rank"),
                  counted(static_cast<std::int64_t>(ranks.size()), "host"));
  if (per_host.size() > 1) text += fmt::format(", {} to {} on each", *per_host.begin(), *per_host.rbegin());
  return text;
}

/// "2 of 4 hosts and 1 of 2".
std::string leaves_text(const std::vector<int>& leaves) {
  std::map<int, int> hosts;
  for (const int leaf : leaves) ++hosts[leaf];
  std::map<int, int, std::greater<>> sizes;
  for (const auto& [leaf, of_leaf] : hosts) ++sizes[of_leaf];
  std::vector<std::string> parts;
  for (const auto& [size, count] : sizes)
    parts.push_back(
        fmt::format("{} of {}", count, parts.empty() ? counted(size, "host") : std::to_string(size)));
  return fmt::format("{}", fmt::join(parts, " and "));
}

/// By each host's name, that of the first host under its leaf.
std::map<std::string, std::string> first_of_leaf(const std::vector<std::string>& hosts,
                                                 const std::vector<int>& leaves) {
  std::map<int, std::string> first;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    std::string& name = first.try_emplace(leaves[host], hosts[host]).first->second;
    name = std::min(name, hosts[host]);
  }
  std::map<std::string, std::string> by_host;
  for (std::size_t host = 0; host < hosts.size(); ++host) by_host[hosts[host]] = first.at(leaves[host]);
  return by_host;
}

/// Pairs under one leaf are measured together, and those of several leaves share uplinks: under other leaves
/// a pair is not what it was. Where hosts have other names it is enough that there are as many such pairs.
std::string difference_of_leaves(const ResultFile& before, const Fabric& fabric_before, const ResultFile& now,
                                 const Fabric& fabric_now) {
  const std::vector<int> leaves = leaves_of_run(before, fabric_before.hosts_per_leaf);
  const std::vector<int> leaves_now = leaves_of_run(now, fabric_now.hosts_per_leaf);
  const std::string text = leaves_text(leaves);
  const std::string text_now = leaves_text(leaves_now);
  if (text != text_now) return fmt::format("its leaf switches are {}, and here they are {}", text, text_now);
  const auto first_now = first_of_leaf(hosts_of_run(now), leaves_now);
  std::string moved;
  for (const auto& [host, first] : first_of_leaf(hosts_of_run(before), leaves)) {
    const auto at = first_now.find(host);
    if (at == first_now.end()) return "";
    if (moved.empty() && at->second != first) moved = host;
  }
  return moved.empty() ? "" : fmt::format("its {} is under a leaf switch with other hosts than here", moved);
}

/// What an input of that name says, such as the algorithm; empty: there is none.
std::string input_of(const ResultFile& result, std::string_view name) {
  const auto at = std::ranges::find(result.inputs, name, &Input::name);
  return at == result.inputs.end() ? "" : at->value;
}

std::string version_of(const ResultFile& result, const std::string& of) {
  const auto at = result.versions.find(of);
  return at == result.versions.end() ? "" : at->second;
}

/// Kind by kind, in whatever order.
std::string difference_of(const Cluster& before, const Inventory& now) {
  const std::vector<HostKind> kinds = kinds_of(before);
  const auto machine = [](const Cluster& cluster, const HostKind& kind) -> const Machine& {
    return cluster.groups[index(kind.groups.front())].machine;
  };
  bool other_counts = false;
  for (const HostKind& kind : kinds_of(now.cluster)) {
    const Machine& here = machine(now.cluster, kind);
    const auto like = std::ranges::find_if(
        kinds, [&](const HostKind& other) { return differences(machine(before, other), here).empty(); });
    if (like != kinds.end()) {
      other_counts |= like->count != kind.count;
      continue;
    }
    const std::vector<Difference> found = differences(machine(before, kinds.front()), here);
    const auto more = static_cast<std::int64_t>(found.size()) - 1;
    return fmt::format("it is of another machine: {}{}", sentence(found.front(), names_of(now, kind.groups)),
                       more > 0 ? fmt::format(", and {} more", counted(more, "difference")) : "");
  }
  return other_counts ? "it has other numbers of hosts of each kind" : "";
}

}  // namespace

std::string why_no_baseline(const ResultFile& result) {
  if (result.partial) return fmt::format("it came to no end ({})", *result.partial);
  bool measured = false;
  for (const CheckRow& row : rows_of(result)) {
    measured |= row.value.has_value() && is_judgement(row.verdict);
    if (row.verdict == Verdict::pass || !is_judgement(row.verdict)) continue;
    if (row.verdict == Verdict::missing && row.value) continue;
    return fmt::format("not all of it passed: {}{}{} is '{}'", row.check, row.subject.empty() ? "" : " of ",
                       row.subject, to_text(row.verdict));
  }
  return measured ? "" : "none of its checks has measured anything";
}

std::string difference_from(const ResultFile& baseline, const std::string& file, const ResultFile& now,
                            const Inventory& hosts) {
  const auto differ = [](const std::string& what, const std::string& before, const std::string& here) {
    return before == here ? std::string()
                          : fmt::format("its {} is {}, and here it is {}", what,
                                        if_any(before).value_or("none"), if_any(here).value_or("none"));
  };
  if (auto text = differ("size", shape_of(baseline), shape_of(now)); !text.empty()) return text;
  for (const UnprobedHost& host : hosts.unprobed)
    return fmt::format("{} could not be probed, so that nobody knows whether this is the same machine",
                       host.name);
  const Cluster before = parse_inventory_json(baseline.machine, file).cluster;
  if (auto text = difference_of(before, hosts); !text.empty()) return text;
  if (auto text = difference_of_leaves(baseline, before.fabric, now, hosts.cluster.fabric); !text.empty())
    return text;
  if (auto text = differ("device", input_of(baseline, "device"), input_of(now, "device")); !text.empty())
    return text;
  if (auto text = differ("polyring", baseline.polyring_version, now.polyring_version); !text.empty())
    return text;
  std::set<std::string> versions;
  for (const auto* of : {&baseline.versions, &now.versions})
    for (const auto& [name, version] : *of)
      if (name != "compiler") versions.insert(name);
  for (const std::string& name : versions)
    if (auto text = differ(name, version_of(baseline, name), version_of(now, name)); !text.empty())
      return text;
  for (const std::string name : {"algorithm", "transport"})
    if (auto text = differ(name, input_of(baseline, name), input_of(now, name)); !text.empty()) return text;
  return "";
}

void Baseline::check_comparable(const ResultFile& now, const Inventory& hosts) const {
  if (file_.empty()) return;
  if (result_.machine == "null")
    usage_error(
        "baseline '{}' does not say which machine it was taken on; take a new one with --save-baseline",
        file_);
  const std::string difference = difference_from(result_, fmt::format("baseline '{}'", file_), now, hosts);
  if (!difference.empty())
    usage_error("baseline '{}' does not fit: {}; take a new one with --save-baseline", file_, difference);
}

std::optional<Threshold> Baseline::of(const Judged& judged) const {
  if (file_.empty() || judged.quantity.of_events) return std::nullopt;
  std::vector<double> medians;
  const CheckRow* like = nullptr;
  for (const CheckRow& row : rows_of(result_)) {
    if (row.check != judged.check || row.quantity != judged.quantity.name || !row.value ||
        row.size_bytes != judged.size_bytes)
      continue;
    if (like == nullptr || row.subject == judged.subject) like = &row;
    medians.push_back(row.value->median);
  }
  if (like == nullptr) return std::nullopt;
  const double usual = like->subject == judged.subject ? like->value->median : summarize(medians).median;
  if (usual == 0) return std::nullopt;  // a part of nothing is nothing
  const bool neither = !like->least && !like->most;
  Threshold threshold;
  threshold.source = fmt::format("baseline {}", file_);
  if (neither ? !judged.quantity.less_is_better : like->least.has_value())
    threshold.least = (1 - tolerance_) * usual;
  if (neither ? judged.quantity.less_is_better : like->most.has_value())
    threshold.most = (1 + tolerance_) * usual;
  return threshold;
}

std::optional<Bytes> Baseline::size_of(std::string_view check) const {
  std::optional<Bytes> size;
  if (file_.empty()) return size;
  for (const CheckRow& row : rows_of(result_)) {
    if (row.check != check || !row.value || row.size_bytes == 0) continue;
    if (size && size->value != row.size_bytes) return std::nullopt;
    size = Bytes{row.size_bytes};
  }
  return size;
}

double parse_tolerance(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit == "%") number /= 100;
  if (error != std::errc{} || (!unit.empty() && unit != "%") || !(number >= 0 && number < 1))
    usage_error("--tolerance '{}' is not a part from 0 to less than 100 %; write it as 10% or 0.1", text);
  return number;
}

Baseline read_baseline(const std::string& path, double tolerance) {
  ResultFile result = read_result(path);
  if (result.kind() != "accept")
    usage_error(
        "'{}' is a result of {}, and a baseline is one of accept; make it with polyring accept "
        "--save-baseline FILE",
        path, result.kind());
  const std::string why = why_no_baseline(result);
  if (!why.empty())
    usage_error("'{}' is no baseline: {}; make one of a good run with polyring accept --save-baseline FILE",
                path, why);
  return {std::move(result), path, tolerance};
}

void check_new_baseline(const std::string& path) {
  std::error_code unknown;
  const auto status = std::filesystem::symlink_status(path, unknown);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status))
    usage_error(
        "'{}' exists already, and an old baseline is not replaced; name another file for --save-baseline",
        path);
  check_writable(path);
}

}  // namespace polyring
