#include "reports/report_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/markdown.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

std::string partial_note(const ResultFile& result) {
  return result.partial ? fmt::format("**Partial**: the run ended after {}.\n\n", *result.partial) : "";
}

std::string heading(const ReportSection& section) {
  static const std::map<std::string_view, std::string_view> names{
      {"allreduce", "Allreduce"}, {"reduce-scatter", "Reduce-scatter"},
      {"allgather", "Allgather"}, {"alltoall", "All-to-all"},
      {"train", "Training step"}, {"scale", "Scaling"},
      {"tune", "Tuning"},         {"accept", "Acceptance"}};
  return fmt::format("## {}: {}\n\n{}", names.at(section.result.kind()), section.name,
                     partial_note(section.result));
}

std::string code(const std::string& text) { return text.empty() ? "unknown" : markdown_code(text); }

/// The vendor's call that the others are compared with, or nothing.
std::string baseline_of(const std::vector<CollectiveRow>& rows) {
  for (const char* vendor : {"mpi", "nccl"}) {
    if (std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.algorithm == vendor; }))
      return vendor;
  }
  return "";
}

std::string comparison(const ResultFile& result) {
  const auto* rows = std::get_if<std::vector<CollectiveRow>>(&result.rows);
  if (rows == nullptr) return "";
  const std::string baseline = baseline_of(*rows);
  if (baseline.empty()) return "";
  const Table compared = comparison_table(*rows, baseline);
  return compared.empty() ? "" : fmt::format("### Against {}\n\n{}\n", baseline, compared.markdown());
}

std::string plans(const ResultFile& result) {
  const auto* rows = std::get_if<std::vector<TrainRow>>(&result.rows);
  const Table table = plans_table(rows == nullptr ? std::span<const TrainRow>{} : *rows);
  return table.empty() ? "" : "### The plan of each size of bucket\n\n" + table.markdown() + "\n";
}

std::string links(std::span<const ReportChart> charts) {
  std::string text;
  for (const ReportChart& chart : charts) {
    text +=
        fmt::format("![{0}]({1}.png)\n\n[{0} as SVG]({1}.svg)\n\n", markdown_text(chart.title), chart.name);
  }
  return text;
}

/// "a: ranks 0-3, b: ranks 4-7", which stays short for many ranks on a host.
std::string hosts(const std::vector<RankHost>& placement) {
  std::string text;
  for (std::size_t i = 0; i < placement.size();) {
    std::size_t end = i + 1;
    while (end < placement.size() && placement[end].host == placement[i].host &&
           placement[end].rank == placement[end - 1].rank + 1) {
      ++end;
    }
    const std::string ranks = end - i == 1
                                  ? fmt::format("rank {}", placement[i].rank)
                                  : fmt::format("ranks {}-{}", placement[i].rank, placement[end - 1].rank);
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", placement[i].host, ranks);
    i = end;
  }
  return text;
}

std::string list(const std::map<std::string, std::string>& values) {
  std::string text;
  for (const auto& [name, value] : values)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  return text;
}

/// "node0: 2 ranks on 2 CPUs; other programs used 0.1 CPUs, …".
std::string conditions_text(const HostConditions& host) {
  const std::string bound = host.least_cpus_of_rank == host.cpus
                                ? "not bound"
                                : fmt::format("bound to {}{} each", host.least_cpus_of_rank,
                                              host.most_cpus_of_rank == host.least_cpus_of_rank
                                                  ? ""
                                                  : fmt::format(" to {}", host.most_cpus_of_rank));
  std::string text =
      fmt::format("{}: {} rank{} on {} CPUs, {}; they used {:.1f} CPUs, other programs {:.1f}", host.host,
                  host.ranks, host.ranks == 1 ? "" : "s", host.cpus, bound, host.own_cpus, host.other_cpus);
  if (host.stolen_cpus >= 0.05)
    text += fmt::format(", the hypervisor's other guests {:.1f}", host.stolen_cpus);
  if (host.cpu_limit)
    text += fmt::format("; limit {:.3g} CPUs, throttled for {:.1f} s", *host.cpu_limit, host.throttled_s);
  text += fmt::format("; load average before {:.2f}", host.load_average);
  if (!host.governor.empty()) text += fmt::format("; frequency governor {}", host.governor);
  return text;
}

std::string provenance(const ReportSection& section) {
  const ResultFile& result = section.result;
  std::string text = "### How it was made\n\n";
  text +=
      fmt::format("- command: {}\n- created: {}\n- polyring: {}, commit {}\n", code(result.command),
                  markdown_text(result.created), markdown_text(result.polyring_version), code(result.commit));
  if (!result.placement.empty()) text += fmt::format("- hosts: {}\n", markdown_text(hosts(result.placement)));
  if (!result.versions.empty()) text += fmt::format("- versions: {}\n", markdown_text(list(result.versions)));
  if (!result.environment.empty())
    text += fmt::format("- environment: {}\n", markdown_text(list(result.environment)));
  for (const HostConditions& host : result.conditions.value_or(std::vector<HostConditions>{}))
    text += fmt::format("- conditions: {}\n", markdown_text(conditions_text(host)));
  for (const std::string& note : result.notes) text += fmt::format("- note: {}\n", markdown_text(note));
  return text + fmt::format("- data: [{0}.json]({0}.json), [{0}.csv]({0}.csv)\n\n", section.name);
}

std::string inputs(const std::vector<Input>& all) {
  if (all.empty()) return "";
  Table table(
      {{"", "input", "", Align::left}, {"", "value", "", Align::left}, {"", "source", "", Align::left}});
  for (const Input& input : all) table.add_row({input.name, input.value, input.source});
  return "### What the model was given\n\n" + table.markdown() + "\n";
}

}  // namespace

std::string report_text(std::span<const ReportSection> sections, std::span<const ReportChart> overlaid,
                        std::span<const std::string> warnings) {
  std::string text =
      "# Polyring report\n\n"
      "Every number has a source. *measured*: timed here. *emulated*: real code, timed over links that were "
      "slowed "
      "down on one machine. *modelled*: computed from a topology and the inputs listed. *published*: taken "
      "from the "
      "literature. Times are medians, with the 95 % confidence interval of the median.\n\n";
  for (const std::string& warning : warnings) text += fmt::format("> {}\n\n", markdown_text(warning));
  if (!overlaid.empty()) text += "## Runs side by side\n\n" + links(overlaid);
  for (const ReportSection& section : sections) {
    text += heading(section) + table(section.result.rows).markdown() + "\n" + links(section.charts) +
            comparison(section.result) + plans(section.result) + inputs(section.result.inputs) +
            provenance(section);
  }
  return text;
}

}  // namespace polyring
