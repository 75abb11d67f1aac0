// What else the hosts of a job did while it measured: other programs, the hypervisor's other guests, limits
// of control groups. Times that were taken beside them are doubtful.
#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "collectives/runtime/world.hpp"
#include "reports/result.hpp"

namespace polyring {

/// What a rank's machine and process have used up to some moment.
struct CpuUse {
  Seconds busy;    // of all CPUs of the machine, by any program
  Seconds stolen;  // that the hypervisor gave to others while they had something to do
  Seconds own;     // by this process
};

/// `root` is where /proc is. What cannot be read is 0. `own` is this
/// process's.
CpuUse cpu_use(const std::filesystem::path& root);

/// What one rank knows of its machine. Plain data: ranks send it to each other.
struct RankLoad {
  double elapsed_s = 0;
  CpuUse used{};            // in that time
  double load_average = 0;  // of the last minute before
  double cpu_limit = 0;     // cores' time that control groups allow; 0: no limit
  double throttled_s = 0;   // for which the hardest hit of these groups was held back
  int cpus = 0;             // online
  int allowed_cpus = 0;     // that the rank is bound to
  double clock_MHz = 0;     // of the CPU that the rank runs on; 0 where unknown
  bool first_of_process = true;
  char machine[64] = "";   // the same for all ranks of one kernel
  char governor[32] = "";  // of the CPUs' frequency; "mixed" where they differ, empty where unknown
};

/// One for each machine, in the order of their first ranks. `hosts`: each rank's.
std::vector<HostConditions> host_conditions(std::span<const RankLoad> ranks,
                                            std::span<const std::string> hosts);

/// A reason for which times are doubtful.
struct Doubt {
  std::string host;    // as in HostConditions
  std::string why;     // "other programs used 1.2 of its 4 CPUs while 4 ranks measured"
  std::string remedy;  // "measure again when nothing else runs"
};

/// One for each reason and machine.
std::vector<Doubt> doubts_of(std::span<const HostConditions> conditions);

/// The same, each as a sentence.
std::vector<std::string> doubts(std::span<const HostConditions> conditions);

/// From its making on, what this rank's machine does.
class LoadWatch {
 public:
  LoadWatch();
  /// Collective. On rank 0 what host_conditions() says; nothing on the others.
  std::vector<HostConditions> conditions(const World& world) const;

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point began_ = Clock::now();
  CpuUse before_;
  std::vector<Seconds> throttled_before_;
  double load_average_ = 0;
};

}  // namespace polyring
