// What the readers of logs fill: runs and their rows as they were printed; and the results made from these.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/collective_names.hpp"
#include "reports/import/import.hpp"
#include "reports/import/log_text.hpp"
#include "reports/result.hpp"

namespace polyring {

/// A row as it was printed.
struct PrintedRow {
  int line = 0;
  std::uint64_t bytes = 0;
  bool of_block = false;  // `bytes` are those of one block, and not of all
  std::string dtype;      // as nccl-tests calls it
  std::string op;         // empty: sum, where the collective reduces
  bool in_place = false;
  std::vector<double> us;              // one time, or several samples
  std::optional<std::uint64_t> wrong;  // elements
  std::string algorithm = {};          // where it is not the run's
  std::optional<int> ranks = {};       // where they are not the run's
};

/// One run of a collective.
struct ImportedRun {
  std::string collective;  // of kCollectives
  std::string implementation;
  std::string algorithm;
  int line = 0;   // where it begins
  int since = 0;  // behind this line, settings such as NCCL_ALGO are this run's
  std::optional<int> ranks;
  std::optional<int> nodes;  // where `placement` is empty
  std::vector<RankHost> placement;
  TimingMethod timing = TimingMethod::back_to_back;
  std::vector<PrintedRow> rows;
  std::vector<int> torn;  // lines of rows that could not be read
  bool ended = true;      // false: its end mark is missing
  std::vector<std::string> notes;
  std::map<std::string, std::string> versions;
  std::map<std::string, std::string> environment;  // as far as it may be recorded
  std::string command;
};

struct ImportedLog {
  std::vector<ImportedRun> runs;  // those without a row are left out, and named
  std::vector<LogLine> others;    // the names of what is none of kCollectives
};

/// The result that a run with rows makes. Refuses a run whose number of ranks neither the log nor `options`
/// say, and one that had another number than `options` say.
ResultFile result_of(const LogText& log, const ImportedRun& run, const ImportOptions& options);

}  // namespace polyring
