// From the results of `polyring allreduce` to what a calibration is fitted to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collectives/schedule/data_device.hpp"
#include "reports/result.hpp"
#include "simulation/calibrate.hpp"

namespace polyring {

/// The measured times of one result file.
struct MeasuredRun {
  std::string file;
  Source source = Source::measured;  // or emulated
  std::string where;                 // "16 ranks on 4 hosts", "16 GPUs on 2 hosts"
  DataDevice device = DataDevice::cpu;
  std::vector<MeasuredPoint> points;
};

/// Its rows whose times are those of our plan on links, on their hosts as the file describes them: not those
/// of vendors' calls, nor of GPUs whose steps the host ordered. Throws a usage Error for a file of another
/// kind, for modelled rows, for GPUs that are software, when no such row is there, and as cluster_of_run()
/// does.
MeasuredRun measured_run(const std::filesystem::path& path, const ResultFile& result);

}  // namespace polyring
