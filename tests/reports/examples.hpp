// Example results of every kind, for tests: made up, but with the proportions of real ones.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "reports/result.hpp"

namespace polyring::examples {

/// multi-ring, ring and mpi on 4 ranks: out of place and in place, five sizes, `samples` interleaved timings
/// each.
ResultFile allreduce(int samples = 21);
/// Two algorithms' steps, with timelines.
ResultFile train();
/// Two algorithms over 4 to 256 GPUs, modelled, with published figures; and two measured points.
ResultFile scale();
/// Published training runs beside the model, with a title. Of the three that were held out, two lie inside;
/// one of them has two GPU counts. One that was seen before and one of eight combinations lie inside, too.
ResultFile published_runs();
/// Two payloads, as a journal of polyring tune has them.
ResultFile tune();

/// 4 hosts: one pair is slow, one host's link is down, one check broke, and others passed.
ResultFile accept();

/// What a run on 64 hosts of 8 ranks leaves behind, each with a name for its file: accept with all 2,016
/// pairs and 512 ranks, allreduce of 30 sizes, scale with six algorithms, train.
std::vector<std::pair<std::string, ResultFile>> of_64_hosts();

/// A folder that is deleted with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace polyring::examples
