// What `polyring accept` does on all ranks.
#pragma once

#include <string>
#include <vector>

#include "bench/cli/options.hpp"
#include "bench/commands/measuring.hpp"

namespace polyring {

struct AcceptOptions {
  std::string spec;                 // a file; empty: none
  std::vector<std::string> checks;  // empty: those of the specification, or all
  std::vector<std::string> fabric;  // files, one for each network; empty: none
  std::vector<std::string> algorithms{"multi-ring"};
  std::string like;           // a machine; empty: none
  std::string data;           // a folder; empty: none
  std::string model;          // that is trained from it; empty: none
  std::string budget;         // empty: none
  std::string duration;       // empty: one round
  std::string baseline;       // a file; empty: none
  std::string tolerance;      // empty: kBaselineTolerance
  std::string save_baseline;  // a file; empty: none
  std::string resume;         // a journal; empty: none
  int attempts = 5;
  TransportOptions transport;
  MeasuringOptions measuring;
  std::string output;
  std::string junit;
  std::string prometheus;
  bool drain = false;
  bool nagios = false;
};

/// By how much values may be worse than a baseline's, if --tolerance is not given.
inline constexpr const char* kBaselineTolerance = "10%";

/// Collective. The run has this host as probed. Returns the exit code, the same on all ranks.
ExitCode accept(const AcceptOptions& options, const MeasuringRun& run);

}  // namespace polyring
