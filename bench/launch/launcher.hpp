// Programs that start ranks: which one it is, and the command line that it needs.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/launch/placement.hpp"
#include "bench/launch/remote_shell.hpp"

namespace polyring {

enum class LauncherKind { open_mpi, mpich, intel, slurm, unknown };

struct Launcher {
  std::string command;  // "mpirun", "/opt/openmpi/bin/mpirun", "srun"
  LauncherKind kind = LauncherKind::unknown;
  std::string name;  // "Open MPI 4.1.4", "MPICH 4.0.2", "Slurm 23.02.6"
  int major = 0;
};

/// By what `command --version` prints.
Launcher identify_launcher(const std::string& command, std::string_view printed);

/// Whether what MpiWorld::library() names can be started by it: an MPI of the same make, and for Open MPI of
/// the same major version. True for Slurm, which starts many.
bool starts(const Launcher& launcher, std::string_view library);

/// A command line in groups of words that belong on one line, and the environment that it needs.
struct LaunchCommand {
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::vector<std::string>> groups;

  std::vector<std::string> words() const;
  /// For people, and to be pasted into a shell.
  std::string text() const;
};

/// What ranks are bound to: the cores of the placement, none, or what the launcher chooses.
enum class Binding { placed, none, own };
Binding binding(const Launcher& launcher, const Placement& placement);

/// Why Open MPI's ranks are not bound although each has cores of its own, in a sentence; else empty. A
/// rankfile cannot hold long lists of cores. And of hosts with equally many cores, caches and so on, mpirun
/// keeps one topology, with the first one's cpuset, by which it binds the ranks of all.
std::string why_not_bound(const Launcher& launcher, const Placement& placement);

/// What a launcher is told beside the program.
struct LaunchOptions {
  RemoteShell shell = RemoteShell::ssh();
  std::vector<std::string> extra;  // for the launcher, as the user set it
  bool oversubscribe = false;
  bool as_allocated = false;  // the hosts and their order are those of the Slurm allocation
};

/// The file that says which rank runs where, in the launcher's own format:
/// - Open MPI: a rankfile, `rank 0=node0 slot=0-9`, where the slot is logical cores of the host
///   (mpirun(1) of versions 4 and 5, "Rankfiles"), of those in its cpuset; empty where ranks are not bound.
///   Not `0:0-9`, cores of a package: version 5 finds these only where packages have equally many;
/// - MPICH and Intel MPI: a host and its ranks on each line, `node0:4`;
/// - Slurm: the host of each rank on a line of its own (srun(1), "--distribution=arbitrary"); empty where the
///   hosts are as allocated and have equally many ranks.
std::string placement_file(const Launcher& launcher, const Placement& placement,
                           const LaunchOptions& options);

/// The command that starts `program` with `file`, the path of the above, where that is not empty. Throws a
/// usage Error for a remote shell that the launcher cannot use.
LaunchCommand launch_command(const Launcher& launcher, const Placement& placement,
                             const LaunchOptions& options, const std::string& file,
                             const std::vector<std::string>& program);

}  // namespace polyring
