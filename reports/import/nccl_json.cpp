// nccl-tests' JSON (-J), versions 1 to 3, https://github.com/NVIDIA/nccl-tests/blob/master/src/util.cu:
//
//   {"version": 3, "args": ["…/all_reduce_perf", …], "env": ["NCCL_DEBUG=INFO", …], "nccl_version": 22903,
//    "config": {"nthreads": 1, "ngpus": 2, …, "devices": [{"rank": 0, "group": 0, "hostname": …}]},
//    "results": [{"size": 8, "count": 2, "type": "float", "redop": "sum", "root": "    -1",
//                 "out_of_place": {"time": 20.1, "alg_bw": …, "bus_bw": …, "nwrong": 0.0},
//                 "out_of_place_per_iter": {"skipped_iterations": 0, …, "times_us": [ … ], …},
//                 "in_place": { … }, …}],
//    "out_of_bounds": {"count": 0, "okay": "true"}, …, "errors": [""], "end_time": …}
//
// `devices` has one entry a process, of its first GPU. From version 2 on, -I adds the times of single calls,
// the longest of all processes. An aborted run leaves no "out_of_bounds", or no whole JSON.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/printable.hpp"
#include "reports/import/bandwidths.hpp"
#include "reports/import/log_format.hpp"
#include "reports/import/log_json.hpp"
#include "reports/import/nccl_runs.hpp"
#include "reports/import/vocabulary.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

using nlohmann::json;

constexpr std::uint64_t kNewestVersion = 3;

bool is_nccl_json(const LogText& log) { return is_json_with(log, "\"nccl_version\""); }

/// The ranks of the first group.
void read_devices(const json& config, ImportedRun& run) {
  constexpr std::size_t kMostDevices = 1'000'000;
  const auto gpus = as_ranks(json_whole(member(config, "nthreads")).value_or(1) *
                             json_whole(member(config, "ngpus")).value_or(1));
  const json& devices = elements(member(config, "devices"));
  if (!gpus || devices.size() * static_cast<std::size_t>(*gpus) > kMostDevices) return;
  bool others = false;
  for (const json& device : devices) {
    if (member(device, "group") != member(devices[0], "group")) {
      others = true;
      continue;
    }
    const std::string host = printable_line(json_text(member(device, "hostname")), 60);
    for (int gpu = 0; gpu < *gpus; ++gpu)
      run.placement.push_back({static_cast<int>(run.placement.size()), host});
    if (json_text(member(device, "device_info")).starts_with("AMD")) run.algorithm = "rccl";
  }
  if (!run.placement.empty()) run.ranks = static_cast<int>(run.placement.size());
  if (others) run.notes.push_back("Several groups of ranks ran side by side: its rows are of one");
}

/// The times of single calls that count; none without -I.
std::vector<double> samples_of(const json& result, bool in_place) {
  const json& calls = member(result, in_place ? "in_place_per_iter" : "out_of_place_per_iter");
  const json& times = elements(member(calls, "times_us"));
  std::vector<double> samples;
  for (std::size_t i = json_whole(member(calls, "skipped_iterations")).value_or(0); i < times.size(); ++i)
    if (const auto us = json_number(times[i])) samples.push_back(*us);
  return samples;
}

/// The rows of all results; a later cycle (-N) adds its times to those of the first.
class ResultsReader {
 public:
  ResultsReader(const LogText& log, ImportedRun& run) : log_(log), run_(run) {}

  void read(const json& results) {
    for (const json& result : results) {
      ++number_;
      for (const bool in_place : {false, true}) {
        const json& half = member(result, in_place ? "in_place" : "out_of_place");
        if (!half.is_null()) read_half(result, half, in_place);
      }
    }
    if (again_)
      run_.notes.push_back("Its rows come from several cycles (-N), all of whose times are samples");
    run_.notes.push_back(
        calls_ ? "Times are those of single calls, the longest of all processes, and their median (-I)"
               : "Times are means over calls and, unless run with -a, over ranks, and not medians");
  }

 private:
  void read_half(const json& result, const json& half, bool in_place) {
    if (!member(half, "cpu_time").is_null())
      refuse(log_, 1, "its times are the CPU's and not those of the collective; run it without -C");
    const auto bytes = json_whole(member(result, "size"));
    const auto us = json_number(member(half, "time"));
    const auto algbw = json_number(member(half, "alg_bw"));
    if (!bytes || !us || (algbw && contradicts(static_cast<double>(*bytes), *us, *algbw)))
      refuse(log_, 1, "result {} lacks its size or time, or they contradict its alg_bw; run it again",
             number_);
    std::vector<double> times = samples_of(result, in_place);
    calls_ = calls_ || !times.empty();
    if (times.empty()) times = {*us};
    const std::string dtype = type_named(json_text(member(result, "type")));
    const std::string op = json_text(member(result, "redop"));
    const auto wrong = json_whole(member(half, "nwrong"));
    const auto [point, first] = points_.emplace(
        std::tuple(*bytes, dtype, op, json_text(member(result, "root")), in_place), run_.rows.size());
    if (first) {
      run_.rows.push_back({.line = 1,
                           .bytes = *bytes,
                           .dtype = dtype,
                           .op = op,
                           .in_place = in_place,
                           .us = times,
                           .wrong = wrong});
    } else if (*bytes > 0) {
      PrintedRow& row = run_.rows[point->second];
      row.us.insert(row.us.end(), times.begin(), times.end());
      row.wrong = row.wrong && wrong ? std::optional(std::max(*row.wrong, *wrong)) : std::nullopt;
      again_ = true;
    }
  }

  const LogText& log_;
  ImportedRun& run_;
  std::map<std::tuple<std::uint64_t, std::string, std::string, std::string, bool>, std::size_t> points_;
  int number_ = 0;      // of a result
  bool calls_ = false;  // there are times of single calls
  bool again_ = false;  // there are several cycles
};

std::string joined(const json& texts) {
  std::string all;
  for (const json& text : texts) all += fmt::format("{}{}", all.empty() ? "" : " ", json_text(text));
  return all;
}

/// How it was timed: -z waits for each call, but with 2 has no barrier, and with 3 does not time it.
void read_blocking(const json& root, ImportedRun& run) {
  if (!json_says(member(member(root, "config"), "blocking_collectives"), true)) return;
  const std::string command = " " + run.command + " ";
  const auto says = [&](const char* option) { return command.find(option) != std::string::npos; };
  run.timing = says(" -z 2 ") ? TimingMethod::blocking : TimingMethod::osu;
  if (!says(" -z 2 ") && !says(" -z 3 ")) run.notes.push_back(kBarriersInTimes);
}

/// What else it says of the run.
void read_rest(const json& root, ImportedRun& run) {
  const json& config = member(root, "config");
  if (json_whole(member(config, "validation")) == 0u) run.notes.push_back("Its results were not checked");
  if (json_whole(member(config, "graph")).value_or(0) > 0) {
    run.timing = TimingMethod::graph;
    run.notes.push_back("Its calls came from a CUDA graph");
  }
  read_blocking(root, run);
  const json& bounds = member(root, "out_of_bounds");
  if (json_says(member(bounds, "okay"), false))
    run.notes.push_back(fmt::format("{}: nccl-tests counted {} values out of bounds", kWrongResults,
                                    json_whole(member(bounds, "count")).value_or(0)));
  for (const json& error : elements(member(root, "errors")))
    if (const std::string text = json_text(error); !text.empty())
      run.notes.push_back("NCCL said: " + printable_line(text, 120));
  if (const auto version = json_whole(member(root, "nccl_version")))
    run.versions[run.algorithm == "rccl" ? "RCCL" : "NCCL"] = nccl_version(*version);
  for (const json& variable : elements(member(root, "env")))
    add_settings(json_text(variable), run.environment);
  run.ended = !bounds.is_null() && !member(root, "end_time").is_null();
}

void read_nccl_json(const LogText& log, const ImportOptions&, ImportedLog& read) {
  const json root = parse_log_json(log, 1, log.text);
  const auto version = json_whole(member(root, "version"));
  if (!version || *version < 1 || *version > kNewestVersion)
    usage_error("'{}' is JSON of nccl-tests of another version than 1 to {}; give the text that it printed",
                log.name, kNewestVersion);
  ImportedRun run;
  run.command = joined(elements(member(root, "args")));
  const std::string test = nccl_test_in(run.command);
  const auto collective = collective_named(test);
  if (!collective) {
    read.others.push_back({1, test.empty() ? "a run that does not say of what" : test});
    return;
  }
  run.collective = *collective;
  run.implementation = "nccl-tests";
  run.algorithm = "nccl";
  run.line = 1;
  read_devices(member(root, "config"), run);
  ResultsReader(log, run).read(elements(member(root, "results")));
  read_rest(root, run);
  read.runs.push_back(std::move(run));
}

}  // namespace

const LogFormat kNcclTestsJson{"nccl-tests", is_nccl_json, false, read_nccl_json};

}  // namespace polyring
