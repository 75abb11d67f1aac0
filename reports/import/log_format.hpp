// A format of logs: one file that defines it, and one row in import.cpp.
#pragma once

#include "reports/import/import.hpp"
#include "reports/import/imported.hpp"
#include "reports/import/log_text.hpp"

namespace polyring {

struct LogFormat {
  const char* name;               // as people know the benchmark
  bool (*is_it)(const LogText&);  // whether there is something of this format in the log
  bool by_lines;                  // and not JSON, which is whole or refused
  /// Adds the runs in a log. Refuses aborted runs and tables that are printed into each other.
  void (*read)(const LogText&, const ImportOptions&, ImportedLog&);
};

extern const LogFormat kNcclTests;
extern const LogFormat kNcclTestsJson;
extern const LogFormat kRcclTestsCsv;
extern const LogFormat kRcclTestsJson;
extern const LogFormat kOsu;
extern const LogFormat kImb;
extern const LogFormat kGloo;
extern const LogFormat kParam;
extern const LogFormat kMpiBench;

}  // namespace polyring
