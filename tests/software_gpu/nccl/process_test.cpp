// NCCL between processes, over the fake.
#include "base/process.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/random_token.hpp"
#include "collectives/schedule/slice.hpp"
#include "tests/collectives/free_port.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRanks = 3;
constexpr int kNobody = -1;

/// What the ranks print and return; one of them may leave early.
std::vector<ProcessResult> run_processes_of_ranks(Rank leaves = kNobody) {
  const int port = testing::free_port();
  setenv("POLYRING_NCCL", POLYRING_SOFTWARE_NCCL, 1);
  std::vector<std::vector<std::string>> programs;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    programs.push_back({"env", fmt::format("PMI_RANK={}", rank), POLYRING_NCCL_PROCESS, fmt::to_string(port),
                        fmt::to_string(rank), fmt::to_string(kRanks)});
    if (rank == leaves) programs.back().emplace_back("leaves");
  }
  std::vector<ProcessResult> results = run_processes(programs, Seconds{60});
  unsetenv("POLYRING_NCCL");
  return results;
}

/// The software GPU's plan, for processes that start meanwhile.
class GpuPlan {
 public:
  explicit GpuPlan(const std::string& lines)
      : path_(std::filesystem::temp_directory_path() / fmt::format("nccl-plan-{:x}", random_token())) {
    std::ofstream(path_) << lines;
    setenv("POLYRING_SOFTWARE_GPU", path_.c_str(), 1);
  }
  ~GpuPlan() {
    unsetenv("POLYRING_SOFTWARE_GPU");
    std::filesystem::remove(path_);
  }
  GpuPlan(const GpuPlan&) = delete;
  GpuPlan& operator=(const GpuPlan&) = delete;

 private:
  std::filesystem::path path_;
};

/// How many sockets of the fake there are.
int sockets() {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
    found += entry.path().filename().string().starts_with("software-nccl-") ? 1 : 0;
  }
  return found;
}

TEST(NcclProcesses, ReduceAndExchange) {
  const int before = sockets();
  for (const ProcessResult& result : run_processes_of_ranks()) {
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, "ok\n") << result.errors;
  }
  EXPECT_LE(sockets(), before) << "nothing is left";
}

TEST(NcclProcesses, SayThatAnotherHasEnded) {
  const std::vector<ProcessResult> results = run_processes_of_ranks(2);
  for (Rank rank = 0; rank < 2; ++rank) {
    const ProcessResult& result = results[static_cast<std::size_t>(rank)];
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.output, AllOf(HasSubstr(fmt::format("rank {} on ", rank)), HasSubstr("has gone")));
  }
}

TEST(NcclProcesses, SayThatTheFirstHasEnded) {
  const std::vector<ProcessResult> results = run_processes_of_ranks(0);
  for (Rank rank = 1; rank < kRanks; ++rank) {
    const ProcessResult& result = results[static_cast<std::size_t>(rank)];
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.output, HasSubstr(fmt::format("rank {} has lost the root", rank)));
  }
}

TEST(NcclProcesses, MayHaveUnequalVersions) {
  const GpuPlan plan("rank 1 nccl version 2.27.3\n");
  for (const ProcessResult& result : run_processes_of_ranks()) {
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.output, AllOf(HasSubstr("2.27.3 at rank 1 on "), HasSubstr("2.28.9 at rank 0 on ")));
  }
}

TEST(NcclProcesses, EndIfOneHangs) {
  const GpuPlan plan("nccl rank 1 hung operation 2\n");
  setenv("POLYRING_SOFTWARE_NCCL_LIMIT", "1", 1);
  const std::vector<ProcessResult> results = run_processes_of_ranks();
  unsetenv("POLYRING_SOFTWARE_NCCL_LIMIT");
  for (const ProcessResult& result : results) EXPECT_EQ(result.exit_code, 3) << result.output;
  EXPECT_THAT(results[0].output + results[2].output, HasSubstr("rank 1 has done 1 operations"));
}

}  // namespace
}  // namespace polyring
