// Lists of hosts, as people, files and Slurm write them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyring {

/// Of a job, far more than any launcher starts.
inline constexpr int kMostRanks = 1'000'000;

/// A host to start ranks on.
struct ListedHost {
  std::string name;
  int ranks = 0;  // 0: as many as it has GPUs
  bool operator==(const ListedHost&) const = default;
};

/// Throws a usage Error for more ranks than kMostRanks in all.
void check_total(std::int64_t ranks);

/// `node0,node1:4,rack[01-04]:8`. A host that is named several times gets the sum, in its first place. Throws
/// a usage Error that names what is wrong for anything else, and as check_total() does.
std::vector<ListedHost> parse_host_list(std::string_view text);

/// One host per line: Open MPI's `node0 slots=4 max_slots=8`, or MPICH's `node0:4`; comments begin with #.
/// Without slots, max_slots is their number. Throws a usage Error that names the line, with `origin` for the
/// file.
std::vector<ListedHost> parse_hostfile(std::string_view text, std::string_view origin);

/// Slurm's `node[01-04,7],login`, in its order. Throws a usage Error.
std::vector<std::string> expand_nodelist(std::string_view text);

/// Slurm's `4(x2),3`: 4, 4, 3. Throws a usage Error, also as check_total() does.
std::vector<int> expand_tasks_per_node(std::string_view text);

/// A variable of the environment, or nothing.
using Environment = std::function<std::optional<std::string>(const char*)>;

/// The hosts of the Slurm allocation that this process is in: SLURM_JOB_NODELIST, with the ranks of
/// SLURM_TASKS_PER_NODE where the job asked for tasks (SLURM_NTASKS). Empty outside of one. Throws a usage
/// Error when they do not fit together.
std::vector<ListedHost> slurm_hosts(const Environment& environment);

}  // namespace polyring
