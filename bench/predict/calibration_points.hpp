// From the results of `polyring allreduce` to what a calibration is fitted to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/result.hpp"
#include "simulation/calibrate.hpp"

namespace polyring {

/// The measured times of one result file.
struct MeasuredRun {
  std::string file;
  Source source = Source::measured;  // or emulated
  std::string where;                 // "16 ranks on 4 hosts"
  std::vector<MeasuredPoint> points;
};

/// Its rows whose plan is known, that is all but vendors' calls, on their hosts as the file describes them;
/// GPUs are left out, since data are in host memory. Throws a usage Error for a file of another kind, for
/// modelled rows, when no such row is there, and when ranks of a host are not numbered one after another.
MeasuredRun measured_run(const std::filesystem::path& path, const ResultFile& result);

}  // namespace polyring
