#include "bench/launch/remote_shell.hpp"

#include <fmt/format.h>

#include <cmath>

#include "bench/launch/shell.hpp"

namespace polyring {

/// Beside the steps that the allocation runs already, on one of its hosts, and free to use all cores there
/// that the allocation has: a step of one task could be bound to one.
std::vector<std::string> RemoteShell::srun_words(const std::string& host) const {
  return {words_.front(), "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--nodelist=" + host};
}

std::vector<std::string> RemoteShell::command(const std::string& host, const std::string& script,
                                              Seconds limit) const {
  if (kind_ == Kind::srun) {
    // srun reads these as options, with which the step could get few of the cores.
    std::vector<std::string> words =
        split_words("env -u SLURM_CPUS_PER_TASK -u SRUN_CPUS_PER_TASK -u SLURM_EXACT");
    const std::vector<std::string> srun = srun_words(host);
    words.insert(words.end(), srun.begin(), srun.end());
    words.insert(words.end(), {"sh", "-c", script});
    return words;
  }
  std::vector<std::string> words = words_;
  if (kind_ == Kind::ssh) {
    words.insert(words.end(),
                 {"-o", "BatchMode=yes", "-o", fmt::format("ConnectTimeout={:.0f}", std::ceil(limit.value))});
  }
  // The user's shell there may be another than sh.
  words.insert(words.end(), {host, "sh -c " + shell_quoted(script)});
  return words;
}

std::string RemoteShell::by_hand(const std::string& host) const {
  std::vector<std::string> words = kind_ == Kind::srun ? srun_words(host) : words_;
  if (kind_ != Kind::srun) words.push_back(host);
  words.emplace_back("true");
  return shell_line(words);
}

}  // namespace polyring
