// polyring launch: looks at the hosts of a job, says what is wrong with them, and starts the job.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>

#include "base/files.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/commands/command.hpp"
#include "bench/launch/accepted.hpp"
#include "bench/launch/ask.hpp"
#include "bench/launch/faults.hpp"
#include "bench/launch/groups.hpp"
#include "bench/launch/hosts.hpp"
#include "bench/launch/launcher.hpp"
#include "bench/launch/placement.hpp"
#include "bench/launch/shell.hpp"
#include "bench/launch/trial.hpp"
#include "bench/record/version.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "reports/result.hpp"
#include "reports/tables.hpp"
#include "topology/host_names.hpp"
#include "topology/inventory/formats/ibnetdiscover.hpp"
#include "topology/inventory/inventory.hpp"
#include "topology/inventory/placement.hpp"

namespace polyring {
namespace {

struct LaunchArguments {
  std::string host_list;
  std::string hostfile;
  std::vector<std::string> fabric;  // files, one for each network
  PlacementConstraints constraints;
  std::string shell;     // empty: srun in an allocation of Slurm's, else ssh
  std::string launcher;  // empty: mpirun, or srun where there is only that
  std::string launcher_words;
  std::string polyring;  // empty: this program's own path
  std::string rankfile = "polyring.rankfile";
  std::string timeout = "45";  // the probe may wait for NVML for 30 s
  bool allow_different = false;
  bool no_trial = false;
  bool dry_run = false;
  bool offline = false;
  std::vector<std::string> program;
};

constexpr double kTrialLimits = 4;  // time limits of an answer that a trial run may take

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// What `command --version` prints; nothing where it cannot be run, or does not end in time.
std::optional<std::string> version_of(const std::string& command, Seconds limit) {
  const std::vector<std::vector<std::string>> program{{command, "--version"}};
  const ProcessResult result = run_processes(program, limit).front();
  return result.exit_code == 0 ? std::optional(result.output) : std::nullopt;
}

/// Only their names are known.
Inventory unknown_hosts(const std::vector<ListedHost>& listed) {
  std::vector<Inventory> hosts;
  for (const ListedHost& host : listed) {
    Machine machine;
    machine.name = host.name;
    machine.packages.push_back({"package0", "", 0, {}, {}, {}});
    hosts.push_back(inventory_of(std::move(machine)));
  }
  return merged(std::move(hosts));
}

void print_faults(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) warn(fault.sentence);
}

class Launch {
 public:
  explicit Launch(const LaunchArguments& arguments)
      : arguments_(arguments), limit_(parse_timeout(arguments.timeout)), program_(arguments.program) {
    if (program_.empty())
      usage_error("name the program to run, as in: polyring launch -H a,b -- polyring allreduce");
    if (arguments.offline && !arguments.dry_run) {
      usage_error(
          "--offline asks no host whether it is fit to run '{}', and so starts nothing; add --dry-run to "
          "print the command, or leave --offline out",
          program_.front());
    }
    polyring_ = !arguments.polyring.empty() ? arguments.polyring
                                            : std::filesystem::read_symlink("/proc/self/exe").string();
    // The one that the hosts are asked for is the one that runs.
    is_polyring_ = std::filesystem::path(program_.front()).filename() == "polyring";
    if (program_.front() == "polyring") program_.front() = polyring_;
  }

  ExitCode run() {
    find_hosts();
    find_launcher();
    Inventory hosts;
    if (arguments_.offline) {
      hosts = unknown_hosts(hosts_);
    } else {
      const std::vector<HostAnswer> answers = ask();
      const std::vector<Fault> faults = look_at(answers, hosts);
      print_faults(faults);
      if (!faults.empty()) return faults.front().code;
    }
    if (fabric_) hosts = placed(hosts, *fabric_);
    place(hosts);
    const std::string file = write_placement();
    show(hosts, file);
    const LaunchCommand command = launch_command(launcher_, placement_, options_, file, program_);
    if (arguments_.dry_run) {
      print_out("{}\n", command.text());
      return ExitCode::ok;
    }
    print_err("{}\n", command.text());
    for (const auto& [name, value] : command.environment) setenv(name.c_str(), value.c_str(), 1);
    if (const auto fault = trial(file)) {
      print_faults({*fault});
      return fault->code;
    }
    const std::filesystem::path journal = is_polyring_ ? journal_to_come(program_) : std::filesystem::path();
    const int code = run_in_foreground(command.words());
    return tell_verdict(journal, program_, fmt::format("{} ended with exit code {}", launcher_.command, code),
                        static_cast<ExitCode>(code));
  }

 private:
  void find_hosts() {
    const std::vector<ListedHost> allocated = slurm_hosts(variable);
    if (!arguments_.host_list.empty()) {
      hosts_ = parse_host_list(arguments_.host_list);
    } else if (!arguments_.hostfile.empty()) {
      hosts_ = parse_hostfile(read_file(arguments_.hostfile), arguments_.hostfile);
    } else {
      hosts_ = allocated;
    }
    if (hosts_.empty()) {
      usage_error(
          "there are no hosts to run '{}' on; name them by -H host1,host2 or --hostfile FILE, or start in a "
          "Slurm allocation",
          program_.front());
    }
    if (arguments_.offline) check_counted();
    check_ranks();
    if (!arguments_.fabric.empty()) fabric_ = read_fabric(arguments_.fabric);
    in_slurm_ = !allocated.empty();
    options_.as_allocated = hosts_ == allocated;
    options_.oversubscribe = arguments_.constraints.oversubscribe;
    options_.extra = split_words(arguments_.launcher_words);
    const std::vector<std::string> shell = split_words(arguments_.shell);
    if (!shell.empty()) {
      options_.shell = RemoteShell::other(shell);
    } else if (std::ranges::all_of(hosts_, [&](const ListedHost& host) { return is_in(allocated, host); }) &&
               version_of("srun", limit_)) {
      options_.shell = RemoteShell::srun();
    }
  }

  /// How many ranks a host gets is up to its GPUs or cores, if nobody says it.
  void check_counted() const {
    if (arguments_.constraints.ranks_per_host) return;
    std::vector<std::string> names;
    for (const ListedHost& host : hosts_) {
      if (host.ranks == 0) names.push_back(host.name);
    }
    if (names.empty()) return;
    usage_error(
        "how many ranks {} can have is not known without asking; list hosts with their ranks, as in {}:4, "
        "give --ranks-per-host, or leave --offline out",
        names_text(names), names.front());
  }

  /// As far as they are known before the hosts are asked.
  void check_ranks() const {
    std::int64_t ranks = 0;
    for (const ListedHost& host : hosts_)
      ranks += host.ranks != 0 ? host.ranks : arguments_.constraints.ranks_per_host.value_or(1);
    check_total(ranks);
  }

  static bool is_in(const std::vector<ListedHost>& hosts, const ListedHost& host) {
    return std::ranges::find(hosts, host.name, &ListedHost::name) != hosts.end();
  }

  void find_launcher() {
    launcher_.command = arguments_.launcher.empty() ? "mpirun" : arguments_.launcher;
    auto printed = version_of(launcher_.command, limit_);
    if (!printed && arguments_.launcher.empty() && in_slurm_) {
      launcher_.command = "srun";
      printed = version_of(launcher_.command, limit_);
    }
    if (!printed) {
      throw Error(
          ExitCode::not_available,
          fmt::format("there is no MPI here: '{} --version' fails; install one, or name its mpirun by "
                      "--launcher",
                      launcher_.command));
    }
    launcher_ = identify_launcher(launcher_.command, *printed);
    if (launcher_.kind == LauncherKind::unknown)
      usage_error(
          "'{}' is no launcher that is known here; name the mpirun of Open MPI, MPICH or Intel MPI, or "
          "Slurm's srun, by --launcher",
          launcher_.command);
    starts_polyring_ = starts(launcher_, MpiWorld::library());
    if (is_polyring_ && !starts_polyring_) {
      throw Error(
          ExitCode::mpi,
          fmt::format("'{}' is of {}, but this polyring was built with {}: each rank would run alone; name "
                      "the mpirun of {} by --launcher",
                      launcher_.command, launcher_.name, MpiWorld::library(), MpiWorld::library()));
    }
  }

  std::vector<HostAnswer> ask() {
    questions_ = {polyring_, launcher_.kind == LauncherKind::slurm ? "" : launcher_.command, options_.shell,
                  limit_};
    std::vector<std::string> names;
    for (const ListedHost& host : hosts_) names.push_back(host.name);
    return ask_hosts(names, questions_);
  }

  /// What is wrong with the hosts; and what they are.
  std::vector<Fault> look_at(const std::vector<HostAnswer>& answers, Inventory& hosts) {
    std::vector<Fault> faults = find_faults(answers, questions_, expected());
    hosts = inventory_of(answers);
    differences_ = host_differences(hosts, answers);
    if (!arguments_.allow_different) std::ranges::move(faults_of(differences_), std::back_inserter(faults));
    return faults;
  }

  ExpectedHosts expected() const { return {fmt::format("polyring {} ({})", version(), commit()), launcher_}; }

  void place(const Inventory& hosts) {
    placement_ = place_ranks(hosts_, hosts, arguments_.constraints);
    options_.as_allocated &=
        std::ranges::equal(placement_.hosts, hosts_, {}, &PlacedHost::name, &ListedHost::name);
  }

  /// Its path; empty when no file is needed. One of the same content is used again, unless others could
  /// change it before the launcher reads it.
  std::string write_placement() const {
    const std::string text = placement_file(launcher_, placement_, options_);
    if (text.empty()) return {};
    const std::filesystem::path path = arguments_.rankfile;
    if (is_own_file(path, text)) return path.string();
    check_writable(path);
    return create_file(path, text).string();
  }

  void show(const Inventory& hosts, const std::string& file) const {
    constexpr std::size_t kMostRows = 32;
    Table table({{"", "host", "", Align::left},
                 {"", "ranks", "", Align::right},
                 {"", "GPUs", "", Align::right},
                 {"", "cores of a rank", "", Align::right}});
    const Binding bound = binding(launcher_, placement_);
    int next = 0;
    for (const PlacedHost& host : placement_.hosts) {
      const int first = next;
      next += host.ranks;
      const auto row = static_cast<std::size_t>(&host - placement_.hosts.data());
      if (row >= kMostRows) continue;
      const std::string cores = cores_of_a_rank(host, bound);
      table.add_row({host.name,
                     host.ranks == 1 ? std::to_string(first) : fmt::format("{}-{}", first, next - 1),
                     arguments_.offline ? "?" : std::to_string(host.gpus), cores});
    }
    print_err(table.text());
    if (placement_.hosts.size() > kMostRows)
      print_err("and {} hosts more\n", placement_.hosts.size() - kMostRows);
    print_list("cores", core_remarks(bound));
    print_list("leaf switches", hosts.places);
    print_list("notes", hosts.notes);
    print_list("the hosts differ", differences_);
    if (arguments_.offline) print_list("not known, since no host was asked", not_known());
    print_err("{}\n", file.empty() ? "" : fmt::format("\nWritten to {}\n", file));
  }

  /// "5", or "4-5" where ranks have not equally many; "any", or "?" where the launcher chooses.
  static std::string cores_of_a_rank(const PlacedHost& host, Binding bound) {
    if (bound != Binding::placed) return bound == Binding::none ? "any" : "?";
    const auto [least, most] = std::ranges::minmax(host.cores, {}, &std::vector<int>::size);
    return least.size() == most.size() ? std::to_string(most.size())
                                       : fmt::format("{}-{}", least.size(), most.size());
  }

  /// One line for hosts of which the same is to be said; and why ranks are not bound.
  std::vector<std::string> core_remarks(Binding bound) const {
    Groups hosts;
    for (const PlacedHost& host : placement_.hosts) {
      const std::string remark = cores_remark(host, bound == Binding::placed);
      if (!remark.empty()) hosts.add(remark, host.name);
    }
    std::vector<std::string> lines;
    for (const auto& [remark, names] : hosts.all())
      lines.push_back(fmt::format("{}: {}", names_text(names), remark));
    const std::string why = why_not_bound(launcher_, placement_);
    if (!why.empty()) lines.push_back(why);
    return lines;
  }

  std::vector<std::string> not_known() const {
    return {"their cores, sockets and GPUs, so ranks are placed by host and not bound",
            fmt::format("whether they answer, are equal, and have this polyring and {}", launcher_.name)};
  }

  static void print_list(const char* title, const std::vector<std::string>& lines) {
    if (!lines.empty()) print_err("\n{}\n  {}\n", title, fmt::join(lines, "\n  "));
  }

  std::optional<Fault> trial(const std::string& file) const {
    if (arguments_.no_trial) return std::nullopt;
    if (!starts_polyring_) {
      print_err("The trial run is skipped: this polyring was built with {}, and {} cannot start it\n",
                MpiWorld::library(), launcher_.name);
      return std::nullopt;
    }
    const Seconds limit = kTrialLimits * limit_;
    const auto program = trial_program(polyring_, limit);
    return try_out(launch_command(launcher_, placement_, options_, file, program), options_.shell, limit);
  }

  const LaunchArguments& arguments_;
  Seconds limit_;
  std::vector<std::string> program_;
  std::string polyring_;
  bool is_polyring_ = false;
  std::vector<ListedHost> hosts_;
  std::optional<FabricMap> fabric_;
  bool in_slurm_ = false;
  LaunchOptions options_;
  Launcher launcher_;
  bool starts_polyring_ = false;
  Questions questions_;
  std::vector<std::string> differences_;
  Placement placement_;
};

void add_host_options(Subcommand command, LaunchArguments& arguments) {
  command
      .add_option("-H,--host", arguments.host_list,
                  "Hosts and their ranks: node0,node1:4,rack[01-16]; without, the Slurm allocation's")
      .type_name("LIST");
  command
      .add_option("--hostfile", arguments.hostfile,
                  "The same from a file, one a line: node1 slots=4, or node1:4")
      .type_name("FILE")
      .excludes({"--host"});
  command
      .add_option(
          "--fabric", arguments.fabric,
          "Output of ibnetdiscover: ranks of hosts on one leaf switch follow each other; once for each "
          "network, where rails have their own")
      .type_name("FILE")
      .one_value_each_time();
  command
      .add_option("-n,--ranks", arguments.constraints.ranks,
                  "Ranks in all; without, one for each GPU or core")
      .type_name("N")
      .range(1, kMostRanks);
  command
      .add_option("--ranks-per-host", arguments.constraints.ranks_per_host,
                  "Ranks of hosts of which the list says nothing")
      .type_name("N")
      .range(1, 100000);
  command.add_flag("--oversubscribe", arguments.constraints.oversubscribe,
                   "Let ranks share GPUs, or cores where there are none");
  command.add_flag("--allow-different", arguments.allow_different, "Start although the hosts differ");
}

void add_launcher_options(Subcommand command, LaunchArguments& arguments) {
  command
      .add_option("--rsh", arguments.shell,
                  "What runs a command on a host; ssh, or srun in a Slurm allocation")
      .type_name("COMMAND");
  command.add_option("--launcher", arguments.launcher, "What starts the ranks; mpirun, or else srun")
      .type_name("COMMAND");
  command
      .add_option("--launcher-args", arguments.launcher_words,
                  "More words for it: \"--mca btl_tcp_if_include ib0\"")
      .type_name("TEXT");
  command.add_option("--polyring", arguments.polyring, "This program on the hosts; the same path as here")
      .type_name("PATH");
  command.add_option("--rankfile", arguments.rankfile, "Where to write which rank runs where")
      .type_name("FILE")
      .show_default();
  command
      .add_option("-T,--timeout", arguments.timeout,
                  "How long a host may take to answer, and a quarter of what the trial run may")
      .show_default();
  command.add_flag("--no-trial", arguments.no_trial, "Start without a tiny allreduce of all ranks before");
  command.add_flag("--dry-run", arguments.dry_run, "Only print the command");
  command.add_flag("--offline", arguments.offline,
                   "With --dry-run, ask no host: the list says how many ranks each gets");
}

}  // namespace

void add_launch(CommandLine& line) {
  auto arguments = std::make_shared<LaunchArguments>();
  const Subcommand command =
      line.add_subcommand("launch", "Check the hosts of a job, and start it",
                          "polyring launch -H node0,node1 -- polyring allreduce -b 8 -e 1G\n"
                          "  polyring launch --hostfile hosts --fabric ibnetdiscover.out --dry-run -- "
                          "./train --epochs 1",
                          [arguments] { return Launch(*arguments).run(); });
  add_host_options(command, *arguments);
  add_launcher_options(command, *arguments);
  command.add_option("program", arguments->program, "What to run, and its arguments, after --")
      .type_name("PROGRAM…");
}

}  // namespace polyring
