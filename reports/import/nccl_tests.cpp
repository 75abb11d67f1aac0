// nccl-tests' and rccl-tests' text, https://github.com/NVIDIA/nccl-tests/blob/master/src/util.cu:
//
//   # nccl-tests version 2.17.8 …                                  new versions
//   # Collective test starting: all_reduce_perf                     new versions
//   # nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) …
//   #  Rank  0 Group  0 Pid 1904979 on gcn151 device  0 […] NVIDIA H100
//   #                                                     out-of-place                       in-place
//   #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw …
//              8             2     float     sum      -1    20.09    0.00    0.00      0    17.42    0.00 …
//   # Out of bounds values : 0 OK
//   # Avg bus bandwidth    : 48.8121
//
// Any of the lines above the rows may be absent. Messages of NCCL and of launchers may stand anywhere. -S and
// -I add columns, and so does rccl-tests; -N prints the rows several times.
#include <algorithm>

#include "reports/import/log_format.hpp"
#include "reports/import/nccl_runs.hpp"
#include "reports/import/vocabulary.hpp"

namespace polyring {
namespace {

bool is_nccl_tests(const LogText& log) {
  return std::ranges::any_of(log.lines, [](const LogLine& line) {
    return line.text.starts_with("# nThread ") || NcclTable::below(line.text, "").has_value();
  });
}

/// Whether algbw is of fewer bytes than those printed, as that of old versions is.
bool has_old_algbw(const NcclRun& run) {
  return std::ranges::any_of(run.rows, [](const NcclRow& row) {
    return std::ranges::any_of(row.halves, [&](const NcclRow::Half& half) {
      const double us = half.us.front();
      const double expected = us > 0 ? static_cast<double>(row.bytes) / us / 1e3 : 0;
      return expected > 1 && number_in(half.bandwidths.algbw).value_or(0) < 0.995 * expected - 0.01;
    });
  });
}

/// How many ranks the log says there were, or lets one conclude; the latter is noted.
std::optional<int> ranks_of(const NcclRun& run, const std::string& collective,
                            std::vector<std::string>& notes) {
  if (!run.placement.empty()) return static_cast<int>(run.placement.size());
  const auto ranks = ranks_by_busbw(bandwidths_of(run.rows), collective);
  if (ranks)
    notes.push_back(fmt::format("The log does not say how many ranks; busbw / algbw does: {}", *ranks));
  return ranks;
}

std::vector<std::string> notes_of(const NcclRun& run, const std::string& collective) {
  std::vector<std::string> notes{
      "Times are means over calls and, unless run with -a, over ranks, and not medians"};
  if (run.cycles > 1)
    notes.push_back(
        fmt::format("Samples are the times of {} cycles (-N), and their median is taken", run.cycles));
  if (has_old_algbw(run))
    notes.push_back(
        "Old nccl-tests print (n - 1) / n of this algbw; here it is size / time, as new ones print it");
  if (run.test.empty())
    notes.push_back(fmt::format("The log does not name its collective; its table is of an {}", collective));
  notes.insert(notes.end(), run.notes.begin(), run.notes.end());
  return notes;
}

ImportedRun imported(const NcclRun& run, const std::string& collective) {
  const std::string library = run.version.starts_with("rccl") ? "rccl" : "nccl";
  ImportedRun imported;
  imported.collective = collective;
  imported.implementation = run.version.empty() ? "nccl-tests" : run.version;
  imported.algorithm = library;
  imported.line = run.line;
  imported.since = run.since;
  imported.placement = run.placement;
  imported.timing = run.timing;
  imported.torn = run.torn;
  imported.ended = run.ended;
  imported.notes = notes_of(run, collective);
  imported.ranks = ranks_of(run, collective, imported.notes);
  imported.versions = run.versions;
  imported.command = run.command;
  for (const NcclRow& row : run.rows) {
    for (const NcclRow::Half& half : row.halves) {
      imported.rows.push_back({.line = row.line,
                               .bytes = row.bytes,
                               .dtype = row.dtype,
                               .op = row.op,
                               .in_place = half.in_place,
                               .us = half.us,
                               .wrong = half.wrong,
                               .algorithm = row.algorithm.empty() ? "" : library + ":" + row.algorithm});
    }
  }
  return imported;
}

void read_nccl_tests(const LogText& log, const ImportOptions& options, ImportedLog& read) {
  for (const NcclRun& run : read_nccl_runs(log)) {
    std::optional<int> ranks = options.ranks;
    if (!run.placement.empty()) ranks = static_cast<int>(run.placement.size());
    const auto collective =
        run.test.empty() ? collective_by_rows(run.rows, ranks) : collective_named(run.test);
    if (collective) {
      read.runs.push_back(imported(run, *collective));
    } else {
      read.others.push_back({run.line, run.test.empty() ? "a table that does not say of what" : run.test});
    }
  }
}

}  // namespace

const LogFormat kNcclTests{"nccl-tests", is_nccl_tests, true, read_nccl_tests};

}  // namespace polyring
