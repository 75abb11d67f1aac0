#include "bench/launch/trial.hpp"

#include <fmt/format.h>

#include "base/process.hpp"
#include "bench/cli/output.hpp"
#include "bench/launch/shell.hpp"

namespace polyring {
namespace {

/// The exit code of one of our own programs, if it can be one.
ExitCode code_of(int exit_code) {
  const bool ours = exit_code > 0 && exit_code <= static_cast<int>(ExitCode::output);
  return ours ? static_cast<ExitCode>(exit_code) : ExitCode::mpi;
}

}  // namespace

std::vector<std::string> trial_program(const std::string& polyring, Seconds limit) {
  // Ranks that wait in vain give up first, since they can say for whom.
  const std::string timeout = fmt::format("{:.3f}", limit.value / 2);
  return {polyring, "allreduce", "-b", "8",       "-e",   "8",  "-n",
          "1",      "-w",        "0",  "--tuned", "none", "-T", timeout};
}

std::optional<Fault> try_out(const LaunchCommand& command, const RemoteShell& shell, Seconds limit) {
  const std::vector<std::vector<std::string>> words{command.words()};
  const ProcessResult result = run_processes(words, limit).front();
  if (result.exit_code == 0 && !result.timed_out) return std::nullopt;
  print_err(last_part(result.errors));
  const ExitCode code = result.timed_out ? ExitCode::timeout : code_of(result.exit_code);
  if (code != ExitCode::timeout) {
    return Fault{code,
                 fmt::format("a trial run of all ranks ended with exit code {}; mend what it said, or start "
                             "without it by --no-trial",
                             result.exit_code)};
  }
  const bool by_ssh = shell.chosen().empty();
  return Fault{
      code, fmt::format(
                "a trial run of all ranks hung for {}, though all hosts answer {}: a firewall may block the "
                "ports that MPI uses between them; open these, or choose a network by --launcher-args",
                to_text(limit), by_ssh ? "the remote shell" : shell.chosen().front())};
}

}  // namespace polyring
