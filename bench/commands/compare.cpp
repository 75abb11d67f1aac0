// polyring compare: runs side by side, ours or those of other benchmarks' logs.
#include "reports/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <memory>

#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/commands/command.hpp"
#include "bench/predict/expected_interval.hpp"
#include "bench/predict/judge.hpp"
#include "bench/record/result_file.hpp"
#include "reports/compare_charts.hpp"
#include "reports/compare_summary.hpp"
#include "reports/compare_text.hpp"
#include "reports/differences.hpp"
#include "reports/import/import.hpp"
#include "reports/not_comparable.hpp"

namespace polyring {
namespace {

struct CompareOptions {
  std::vector<std::string> files;
  std::string baseline = "1";
  int ranks = 0;  // 0: as the logs say
  MachineOptions machine;
  std::string charts;
  std::string output;
};

/// `--ranks` is for logs that do not say how many; those that do are read without it.
std::vector<ResultFile> read_file(const std::string& file, int ranks) {
  if (ranks == 0) return import_log(file);
  try {
    return import_log(file);
  } catch (const Error&) {
    return import_log(file, {.ranks = ranks});
  }
}

std::vector<ComparedRun> read_runs(const CompareOptions& options) {
  std::vector<ComparedRun> runs;
  for (const std::string& file : options.files) {
    std::vector<ComparedRun> of_file = runs_of_file(file, read_file(file, options.ranks));
    std::ranges::move(of_file, std::back_inserter(runs));
  }
  if (runs.size() < 2 && options.machine.is_live())
    usage_error("'{}' has one run, and nothing to compare it with; name another file, too, or its --machine",
                options.files.front());
  label_runs(runs);
  return runs;
}

/// By number, letter, or name: as it was typed, or its last part, with or without its ending.
std::size_t find_baseline(const std::vector<ComparedRun>& runs, const std::string& wanted) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  if (error == std::errc() && end == wanted.data() + wanted.size() && number >= 1 && number <= runs.size())
    return number - 1;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::filesystem::path path(runs[i].name);
    const bool letter =
        wanted.size() == 1 && std::toupper(static_cast<unsigned char>(wanted[0])) == runs[i].label[0];
    if (letter || wanted == runs[i].name || wanted == path.filename() || wanted == path.stem()) return i;
  }
  std::vector<std::string> names;
  for (const ComparedRun& run : runs) names.push_back(fmt::format("{} ({})", run.label, run.name));
  usage_error("--baseline {} is none of the runs; choose a number from 1 to {}, or one of {}", wanted,
              runs.size(), fmt::join(names, ", "));
}

/// The results that come from others' logs.
std::vector<std::pair<const ComparedRun*, const ResultFile*>> imported(const std::vector<ComparedRun>& runs) {
  std::vector<std::pair<const ComparedRun*, const ResultFile*>> results;
  for (const ComparedRun& run : runs)
    for (const ResultFile& result : run.results)
      if (collective_rows(result).front().source == Source::imported) results.emplace_back(&run, &result);
  return results;
}

void write_imported(const std::vector<ComparedRun>& runs, const std::string& path) {
  if (path.empty()) return;
  for (const auto& [run, result] : imported(runs)) {
    print_remark(fmt::format("{} ({}) is written to {}\n", run->label, result->collective,
                             write_output(path, *result)));
  }
}

void check_imported(const std::vector<ComparedRun>& runs, const std::string& path) {
  if (path.empty()) return;
  const std::size_t count = imported(runs).size();
  if (count == 0)
    usage_error("-J writes what was imported from logs, and all of these are results already; leave it out");
  if (count > 1 && path == kStandardOutput)
    usage_error("-J - has room for one result, and {} are imported; give -J a file", count);
}

void judge(Comparison& comparison, const MachineOptions& machine) {
  if (machine.is_live()) {
    if (!machine.fabric.empty() || !machine.assume.empty() || machine.rails)
      usage_error("--fabric, --assume and --rails are of a machine; name it with --machine or --from");
    return;
  }
  const Expect expect = [](const Cluster& cluster, Collective collective, const std::string& algorithm,
                           Bytes size) -> std::optional<JudgedBy> {
    const auto interval = expected_interval(cluster, collective, algorithm, size);
    if (!interval) return std::nullopt;
    return JudgedBy{interval->low.gigabytes_per_second(), interval->high.gigabytes_per_second(),
                    interval->rests_on};
  };
  Judge judge(machine.load().cluster, expect);
  for (ComparedTable& table : comparison.tables)
    for (ComparedLine& line : table.lines)
      for (ComparedCell& cell : line.cells)
        if (cell.row != nullptr) cell.judged = judge.of(*cell.result, *cell.row);
}

void print_list(const char* title, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  print_remark(fmt::format("\n{}\n\n", title));
  for (const std::string& sentence : sentences) print_remark(fmt::format("- {}\n", sentence));
}

/// What one must know before the times: all of it is beside the rows.
void print_differences(const std::vector<ComparedRun>& runs, const Comparison& comparison) {
  print_remark(shown(runs_table(runs, comparison.baseline)));
  if (runs.size() == 1) {
    print_list("What cannot be judged:", not_comparable(runs, comparison));
    return print_list("Notes of the run:", notes_of_runs(runs));
  }
  const RunDifferences differences = differences_of(runs);
  if (differences.differing.empty()) {
    print_remark("\nNothing that is recorded of these runs differs.\n");
  } else {
    print_remark("\n" + shown(differences_table(runs, differences)));
  }
  if (!differences.same.empty())
    print_remark(fmt::format("\nThe same: {}\n", fmt::join(differences.same, "; ")));
  if (!differences.recorded_in_one.empty())
    print_remark(fmt::format("\nOne run alone says: {}\n", fmt::join(differences.recorded_in_one, ", ")));
  print_list("What cannot be compared:", not_comparable(runs, comparison));
  print_list("Notes of the runs:", notes_of_runs(runs));
}

void print_tables(const std::vector<ComparedRun>& runs, const Comparison& comparison) {
  if (format() == Format::csv || format() == Format::json)
    return print_table(compared_rows(runs, comparison));
  for (const ComparedTable& table : comparison.tables) {
    print_out("\n");
    print_table(compared_table(runs, comparison, table));
    print_list("What limits there:", judgement_sentences(runs, table));
  }
}

ExitCode compare(const CompareOptions& options) {
  check_output(options.output);
  const std::vector<ComparedRun> runs = read_runs(options);
  Comparison comparison = compare_runs(runs, find_baseline(runs, options.baseline));
  check_imported(runs, options.output);
  judge(comparison, options.machine);
  // What may be refused comes before anything is printed.
  const auto charts = options.charts.empty()
                          ? std::nullopt
                          : std::optional(draw_comparison(runs, comparison, options.charts));
  print_differences(runs, comparison);
  print_tables(runs, comparison);
  if (runs.size() > 1) {
    print_list("In short:", summary_sentences(runs, comparison));
    print_remark(
        "\nAn interval says how sure a run's own median is. Another launch may differ by more: repeat both "
        "runs to see.\n");
  }
  if (charts) {
    charts->warning.empty() ? print_remark(fmt::format("The charts are in {}\n", charts->folder.string()))
                            : warn(fmt::format("there are no charts: {}", charts->warning));
  }
  write_imported(runs, options.output);
  return ExitCode::ok;
}

}  // namespace

void add_compare(CommandLine& line) {
  auto options = std::make_shared<CompareOptions>();
  const Subcommand command = line.add_subcommand(
      "compare", "Set runs side by side: what differs, ratios with intervals; also other benchmarks' logs",
      "polyring compare before.json after.json\n"
      "  polyring compare nccl-tests.log polyring.json --machine dgx-h100 --chart charts\n"
      "  polyring compare nccl-tests.log --machine dgx-h100",
      [options] { return compare(*options); });
  command
      .add_option(
          "files", options->files,
          "Results of allreduce, reduce-scatter, allgather and alltoall, as -J writes them, journals of "
          "runs that did not come to their end, and what nccl-tests, rccl-tests, OSU, IMB, Gloo, PARAM and "
          "mpiBench print")
      .required()
      .type_name("FILE…");
  command
      .add_option("--baseline", options->baseline,
                  "The run that the others are compared with: its number, letter or name")
      .show_default()
      .type_name("RUN");
  command.add_option("--ranks", options->ranks, "Ranks of logs that do not say how many")
      .type_name("N")
      .range(1, 10'000'000);
  options->machine.add_to(command);
  command
      .add_option(
          "--chart", options->charts,
          "Draw bus bandwidth and latency of all runs over size into this folder; an existing one is kept "
          "and .1, .2, … appended")
      .type_name("DIR");
  add_output_option(command, options->output, "what was imported from logs");
}

}  // namespace polyring
