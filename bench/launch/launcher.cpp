#include "bench/launch/launcher.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/error.hpp"
#include "bench/launch/rank_cores.hpp"
#include "bench/launch/shell.hpp"

namespace polyring {
namespace {

using Words = std::vector<std::string>;

/// The word behind `mark`; empty where that is missing.
std::string word_after(std::string_view text, std::string_view mark) {
  const std::size_t found = text.find(mark);
  if (found == std::string_view::npos) return {};
  const Words words = split_words(text.substr(found + mark.size(), 64));
  return words.empty() ? std::string() : words.front();
}

/// The part of "Open MPI 4.1.4" before the first dot of the version, "Open MPI 4".
std::string_view series(std::string_view library) { return library.substr(0, library.find('.')); }

Words host_words(const Placement& placement) {
  Words words;
  for (const PlacedHost& host : placement.hosts) words.push_back(fmt::format("{}:{}", host.name, host.ranks));
  return words;
}

std::string rankfile(const Placement& placement) {
  std::string text;
  int rank = 0;
  for (const PlacedHost& host : placement.hosts) {
    for (const std::vector<int>& cores : host.cores)
      text += fmt::format("rank {}={} slot={}\n", rank++, host.name, core_list(cores));
  }
  return text;
}

bool equally_many(const Placement& placement) {
  return std::ranges::all_of(
      placement.hosts, [&](const PlacedHost& host) { return host.ranks == placement.hosts.front().ranks; });
}

/// The cores of each rank, when every host's ranks have blocks of so many, one after the other from the first
/// core on, which is what MPICH's -bind-to core:N means; else 0.
int cores_in_blocks(const Placement& placement) {
  int each = 0;
  for (const PlacedHost& host : placement.hosts) {
    int next = 0;
    for (const std::vector<int>& cores : host.cores) {
      const int width = static_cast<int>(cores.size());
      if (each == 0) each = width;
      if (width != each || cores.front() != next || cores.back() != next + width - 1) return 0;
      next += width;
    }
  }
  return placement.bound() ? each : 0;
}

void add_open_mpi(LaunchCommand& command, const Launcher& launcher, const Placement& placement,
                  const LaunchOptions& options, const std::string& file) {
  const bool prrte = launcher.major >= 5;
  command.groups.push_back({"--host", fmt::format("{}", fmt::join(host_words(placement), ","))});
  command.groups.push_back({"-n", std::to_string(placement.ranks())});
  if (!file.empty()) {
    command.groups.push_back(prrte ? Words{"--map-by", "rankfile:file=" + file} : Words{"--rankfile", file});
  } else {
    const std::string slots = options.oversubscribe && prrte ? "slot:oversubscribe" : "slot";
    command.groups.push_back({"--map-by", slots, "--bind-to", "none"});
    if (options.oversubscribe && !prrte) command.groups.back().emplace_back("--oversubscribe");
  }
  const Words shell = options.shell.chosen();
  if (!shell.empty()) {
    command.groups.push_back({prrte ? "--prtemca" : "--mca", prrte ? "plm_ssh_agent" : "plm_rsh_agent",
                              fmt::format("{}", fmt::join(shell, " "))});
  }
}

void add_hydra(LaunchCommand& command, const Launcher& launcher, const Placement& placement,
               const LaunchOptions& options, const std::string& file) {
  const bool mpich = launcher.kind == LauncherKind::mpich;
  command.groups.push_back({mpich ? "-f" : "-machinefile", file});
  command.groups.push_back({"-n", std::to_string(placement.ranks())});
  // Intel MPI binds ranks by settings of its own.
  if (mpich) {
    const int each = cores_in_blocks(placement);
    command.groups.push_back({"-bind-to", each == 0 ? "none" : fmt::format("core:{}", each)});
  }
  const Words shell = options.shell.chosen();
  if (shell.size() > 1) {
    usage_error(
        "{} takes a remote shell of one word, but '{}' are {}; write a script and name that with --rsh",
        launcher.name, fmt::join(shell, " "), shell.size());
  }
  // As ssh it would be called with -x before the host.
  if (!shell.empty()) command.groups.push_back({"-launcher", "rsh", "-launcher-exec", shell.front()});
}

void add_slurm(LaunchCommand& command, const Placement& placement, const std::string& file) {
  command.groups.push_back({fmt::format("--ntasks={}", placement.ranks())});
  if (file.empty()) {
    command.groups.back().push_back(fmt::format("--nodes={}", placement.hosts.size()));
    command.groups.back().push_back(fmt::format("--ntasks-per-node={}", placement.hosts.front().ranks));
    command.groups.back().emplace_back("--distribution=block");
  } else {
    command.groups.back().emplace_back("--distribution=arbitrary");
    command.environment.emplace_back("SLURM_HOSTFILE", file);
  }
  command.groups.back().push_back(placement.bound() ? "--cpu-bind=cores" : "--cpu-bind=none");
  command.groups.push_back({"--kill-on-bad-exit=1"});
}

/// Open MPI 4 overflows a buffer (seen at 51 characters), 5 cuts the list off after 63.
bool has_long_list(const PlacedHost& host) {
  constexpr std::size_t kLongestList = 40;
  return std::ranges::any_of(host.cores,
                             [](const auto& cores) { return core_list(cores).size() > kLongestList; });
}

}  // namespace

Launcher identify_launcher(const std::string& command, std::string_view printed) {
  Launcher launcher{command, LauncherKind::unknown, "", 0};
  const auto found = [&](LauncherKind kind, const char* name, std::string version) {
    if (version.empty()) return false;
    launcher.kind = kind;
    launcher.name = fmt::format("{} {}", name, version);
    launcher.major = std::atoi(version.c_str());
    return true;
  };
  // In the order of how sure they are: "Version" alone stands in many texts.
  if (found(LauncherKind::open_mpi, "Open MPI", word_after(printed, "(Open MPI)")) ||
      found(LauncherKind::open_mpi, "Open MPI", word_after(printed, "(OpenRTE)")))
    return launcher;
  if (printed.find("Intel(R) MPI Library") != std::string_view::npos) {
    found(LauncherKind::intel, "Intel MPI", word_after(printed, "Version"));
  } else if (printed.find("HYDRA") != std::string_view::npos) {
    found(LauncherKind::mpich, "MPICH", word_after(printed, "Version:"));
  } else if (printed.starts_with("slurm")) {
    found(LauncherKind::slurm, "Slurm", word_after(printed, " "));
  }
  return launcher;
}

bool starts(const Launcher& launcher, std::string_view library) {
  if (launcher.kind == LauncherKind::slurm) return true;
  if (launcher.kind == LauncherKind::open_mpi) return series(library) == series(launcher.name);
  return !library.starts_with("Open MPI");
}

Binding binding(const Launcher& launcher, const Placement& placement) {
  if (launcher.kind == LauncherKind::intel) return Binding::own;
  if (!placement.bound()) return Binding::none;
  if (launcher.kind == LauncherKind::slurm) return Binding::own;
  const bool can = launcher.kind == LauncherKind::open_mpi ? why_not_bound(launcher, placement).empty()
                                                           : cores_in_blocks(placement) != 0;
  return can ? Binding::placed : Binding::none;
}

std::string why_not_bound(const Launcher& launcher, const Placement& placement) {
  if (launcher.kind != LauncherKind::open_mpi || !placement.bound()) return {};
  std::map<std::size_t, const PlacedHost*> first;  // by the number of cores
  for (const PlacedHost& host : placement.hosts) {
    if (has_long_list(host)) {
      return fmt::format("a rankfile cannot list the cores of {}, of so many ranges: ranks are not bound",
                         host.name);
    }
    const PlacedHost& other = *first.emplace(host.cpuset.size(), &host).first->second;
    if (host.cpuset != other.cpuset) {
      return fmt::format(
          "{} and {} may use different cores (cpuset), which Open MPI mixes up: ranks are not bound",
          other.name, host.name);
    }
  }
  return {};
}

std::vector<std::string> LaunchCommand::words() const {
  Words all;
  for (const Words& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::string LaunchCommand::text() const {
  std::string text;
  for (const auto& [name, value] : environment) text += fmt::format("{}={} ", name, shell_quoted(value));
  for (const Words& group : groups) {
    if (&group != &groups.front()) text += " \\\n  ";
    text += shell_line(group);
  }
  return text;
}

std::string placement_file(const Launcher& launcher, const Placement& placement,
                           const LaunchOptions& options) {
  if (launcher.kind == LauncherKind::open_mpi)
    return binding(launcher, placement) == Binding::placed ? rankfile(placement) : "";
  std::string text;
  if (launcher.kind != LauncherKind::slurm) {
    for (const std::string& host : host_words(placement)) text += host + "\n";
  } else if (!options.as_allocated || !equally_many(placement)) {
    for (const PlacedHost& host : placement.hosts) {
      for (int rank = 0; rank < host.ranks; ++rank) text += host.name + "\n";
    }
  }
  return text;
}

LaunchCommand launch_command(const Launcher& launcher, const Placement& placement,
                             const LaunchOptions& options, const std::string& file,
                             const std::vector<std::string>& program) {
  LaunchCommand command;
  command.groups.push_back({launcher.command});
  if (launcher.kind == LauncherKind::open_mpi) {
    add_open_mpi(command, launcher, placement, options, file);
  } else if (launcher.kind == LauncherKind::slurm) {
    add_slurm(command, placement, file);
  } else {
    add_hydra(command, launcher, placement, options, file);
  }
  if (!options.extra.empty()) command.groups.push_back(options.extra);
  command.groups.push_back(program);
  return command;
}

}  // namespace polyring
