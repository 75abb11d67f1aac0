// The runs in the text of nccl-tests and rccl-tests, as printed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/import/imported.hpp"
#include "reports/import/nccl_table.hpp"

namespace polyring {

/// One run of a test, as it was printed.
struct NcclRun {
  int line = 0;
  int since = 0;     // the last line of the run before
  std::string test;  // "all_reduce"; empty where the log does not say
  std::string command;
  std::string version;  // "nccl-tests 2.17.8"
  std::vector<RankHost> placement;
  std::optional<NcclTable> table;
  std::vector<NcclRow> rows;
  std::vector<int> torn;  // lines
  int cycles = 1;
  bool ended = false;  // "Avg bus bandwidth" was there
  std::vector<std::string> notes;
  TimingMethod timing = TimingMethod::back_to_back;
  std::map<std::string, std::string> versions;
};

/// What a log says of a run with -z 1.
inline constexpr const char* kBarriersInTimes = "Its times include the barrier after each call (-z 1)";

/// All runs of a log. Refuses an aborted run, and tables that are printed into each other.
std::vector<NcclRun> read_nccl_runs(const LogText& log);

}  // namespace polyring
