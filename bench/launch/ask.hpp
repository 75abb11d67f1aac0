// What each host says of itself: its topology, its Polyring and its MPI, asked through a remote shell.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.hpp"
#include "bench/launch/remote_shell.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

struct Questions {
  std::string polyring;  // the program, as it is called there
  std::string launcher;  // "mpirun"; empty where it need not be there
  RemoteShell shell = RemoteShell::ssh();
  Seconds limit;  // for a host to answer
};

struct HostAnswer {
  std::string host;
  bool timed_out = false;
  std::string busy_with;    // the command that did not end, of a host that timed out after it began to answer
  std::string unreachable;  // why it did not answer at all, in the remote shell's words
  std::string polyring;     // "polyring 0.1.0 (1a2b3c4)"; empty when it cannot be run
  std::string mpi;          // "Open MPI 4.1.4"; empty when there is none
  std::string system;       // the running system's boot and name, which tell two machines apart
  std::string nccl;         // "2.21.5", of the library that its loader finds; empty when there is none
  std::optional<Machine> machine;
  std::optional<AllowedCores> allowed;  // that a job there may use; nothing: all
  /// Why Polyring, MPI or the machine is missing, in the words of the host.
  std::string no_polyring, no_mpi, no_machine;
};

/// Asks all at the same time, and this host without the remote shell. In the order of `hosts`.
std::vector<HostAnswer> ask_hosts(std::span<const std::string> hosts, const Questions& questions);

/// Those that said what they are, under the names by which they were asked.
Inventory inventory_of(std::span<const HostAnswer> answers);

/// What a host is asked, for sh to run.
std::string question_script(const Questions& questions);
/// What it gave.
HostAnswer read_answer(const std::string& host, const Questions& questions, const ProcessResult& result);

/// Whether the name is one of this host's own: what it calls itself, or localhost.
bool is_this_host(std::string_view name);

}  // namespace polyring
