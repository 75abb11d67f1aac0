#include "bench/launch/faults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "bench/launch/groups.hpp"
#include "topology/host_names.hpp"

namespace polyring {
namespace {

const char* has(const std::vector<std::string>& hosts) { return hosts.size() == 1 ? "has" : "have"; }

/// Collects faults that several hosts may share.
class Finder {
 public:
  Finder(const Questions& questions, const ExpectedHosts& expected)
      : questions_(questions), expected_(expected) {}

  void add(const HostAnswer& answer) {
    const std::string& host = answer.host;
    if (answer.timed_out) {
      silent_.add(answer.busy_with, host);
    } else if (!answer.unreachable.empty()) {
      // ssh names the host in its words; then hosts have not the same ones.
      unreachable_.add(answer.unreachable, host);
    } else {
      if (!answer.system.empty()) systems_.add(answer.system, host);
      if (answer.polyring.empty()) {
        no_polyring_.add(answer.no_polyring, host);
      } else if (answer.polyring != expected_.polyring) {
        other_polyring_.add(answer.polyring, host);
      } else if (!answer.machine) {
        no_machine_.add(answer.no_machine, host);
      }
      if (questions_.launcher.empty()) return;
      if (answer.mpi.empty()) {
        no_mpi_.add(answer.no_mpi, host);
      } else if (answer.mpi != expected_.launcher.name) {
        other_mpi_.add(answer.mpi, host);
      }
    }
  }

  std::vector<Fault> found() {
    const std::string limit = to_text(questions_.limit);
    for (const auto& [words, hosts] : unreachable_.all()) {
      say(ExitCode::not_available, "cannot reach {}: {}; mend what this shows: {}", names_text(hosts), words,
          questions_.shell.by_hand(hosts.front()));
    }
    for (const auto& [command, hosts] : silent_.all()) {
      if (command.empty()) {
        say(ExitCode::timeout,
            "no answer from {} within {}: a firewall may drop what is sent there, or the host hangs; see "
            "what this "
            "does: {}, or raise --timeout",
            names_text(hosts), limit, questions_.shell.by_hand(hosts.front()));
      } else {
        say(ExitCode::timeout,
            "'{}' did not end within {} on {}: look there for a driver or a file system that hangs, or raise "
            "--timeout",
            command, limit, names_text(hosts));
      }
    }
    for (const auto& [system, hosts] : systems_.all()) {
      if (hosts.size() < 2) continue;
      say(ExitCode::usage, "{} are one machine; name it once, with the ranks of all behind a colon: {}:8",
          fmt::join(hosts, " and "), hosts.back());
    }
    say_what_is_missing();
    return std::move(faults_);
  }

 private:
  template <typename... Args>
  void say(ExitCode code, fmt::format_string<Args...> sentence, Args&&... args) {
    faults_.push_back({code, fmt::format(sentence, std::forward<Args>(args)...)});
  }

  void say_what_is_missing() {
    for (const auto& [words, hosts] : no_polyring_.all()) {
      say(ExitCode::not_available,
          "{} cannot run '{}': {}; install the same build there, or say with --polyring where it is",
          names_text(hosts), questions_.polyring, words);
    }
    for (const auto& [other, hosts] : other_polyring_.all()) {
      say(ExitCode::not_available, "{} {} {}, but this is {}; install the same build on all hosts",
          names_text(hosts), has(hosts), other, expected_.polyring);
    }
    for (const auto& [words, hosts] : no_machine_.all()) {
      say(ExitCode::not_available, "polyring probe fails on {}: {}; run it there", names_text(hosts), words);
    }
    for (const auto& [words, hosts] : no_mpi_.all()) {
      say(ExitCode::not_available,
          "{} {} no MPI: '{} --version' says {}; install {} there, or put it on the PATH of shells that are "
          "not "
          "interactive",
          names_text(hosts), has(hosts), questions_.launcher, words, expected_.launcher.name);
    }
    for (const auto& [other, hosts] : other_mpi_.all()) {
      say(ExitCode::mpi, "{} {} {}, but the ranks are started by {} here; install the same on all hosts",
          names_text(hosts), has(hosts), other, expected_.launcher.name);
    }
  }

  const Questions& questions_;
  const ExpectedHosts& expected_;
  Groups unreachable_, silent_, systems_, no_polyring_, other_polyring_, no_machine_, no_mpi_, other_mpi_;
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<Fault> find_faults(std::span<const HostAnswer> answers, const Questions& questions,
                               const ExpectedHosts& expected) {
  Finder finder(questions, expected);
  for (const HostAnswer& answer : answers) finder.add(answer);
  return finder.found();
}

std::vector<std::string> host_differences(const Inventory& hosts, std::span<const HostAnswer> answers) {
  std::vector<std::string> sentences;
  for (NamedDifference& difference : differences_of(hosts))
    sentences.push_back(std::move(difference.sentence));
  Groups nccl;
  for (const HostAnswer& answer : answers) {
    if (!answer.nccl.empty()) nccl.add(answer.nccl, answer.host);
  }
  const auto usual =
      std::ranges::max_element(nccl.all(), {}, [](const auto& group) { return group.second.size(); });
  for (const auto& group : nccl.all()) {
    if (&group != &*usual)
      sentences.push_back(fmt::format("{} {} NCCL {}, not {}", names_text(group.second), has(group.second),
                                      group.first, usual->first));
  }
  return sentences;
}

std::vector<Fault> faults_of(std::span<const std::string> differences) {
  std::vector<Fault> faults;
  for (const std::string& difference : differences) {
    faults.push_back({ExitCode::usage,
                      fmt::format("the hosts differ: {}; leave the odd ones out, mend them, or go on with "
                                  "--allow-different",
                                  difference)});
  }
  return faults;
}

}  // namespace polyring
