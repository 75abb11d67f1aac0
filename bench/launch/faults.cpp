#include "bench/launch/faults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace polyring {
namespace {

/// Hosts by what is true of them, in the order of their first ones.
class Groups {
 public:
  void add(const std::string& trait, const std::string& host) {
    const auto known = std::ranges::find(groups_, trait, &Group::first);
    if (known == groups_.end()) {
      groups_.push_back({trait, {host}});
    } else {
      known->second.push_back(host);
    }
  }

  using Group = std::pair<std::string, std::vector<std::string>>;
  const std::vector<Group>& all() const { return groups_; }

 private:
  std::vector<Group> groups_;
};

/// "4 x A, 1 x B", in the order of the first ones; "no GPUs" for none.
std::string counted(const std::vector<std::string>& things, const std::string& none) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& thing : things) {
    const auto known = std::ranges::find(counts, thing, &std::pair<std::string, int>::first);
    if (known == counts.end()) {
      counts.emplace_back(thing, 1);
    } else {
      ++known->second;
    }
  }
  if (counts.empty()) return none;
  std::vector<std::string> parts;
  for (const auto& [thing, count] : counts) parts.push_back(fmt::format("{} x {}", count, thing));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string gpus_of(const Machine& machine) {
  std::vector<std::string> models;
  for (const Gpu& gpu : machine.gpus) models.push_back(gpu.model.empty() ? "GPU" : gpu.model);
  return counted(models, "no GPUs");
}

std::string nics_of(const Machine& machine) {
  std::vector<std::string> nics;
  for (const Nic& nic : machine.nics) {
    if (!nic.up()) continue;
    const Bandwidth bandwidth = nic.bandwidth();
    nics.push_back(bandwidth.known() ? fmt::format("{} NIC up at {}", to_text(nic.kind), to_text(bandwidth))
                                     : fmt::format("{} NIC up", to_text(nic.kind)));
  }
  std::ranges::sort(nics);
  return counted(nics, "no NIC up");
}

std::string cores_of(const Machine& machine) {
  std::vector<std::string> cores;
  for (const Package& package : machine.packages)
    cores.push_back(fmt::format("package of {} cores", package.cores));
  return counted(cores, "no packages");
}

/// Collects faults that several hosts may share.
class Finder {
 public:
  Finder(const Questions& questions, const Expected& expected) : questions_(questions), expected_(expected) {}

  void add(const HostAnswer& answer) {
    const std::string& host = answer.host;
    if (answer.timed_out) {
      silent_.add(answer.busy_with, host);
    } else if (!answer.unreachable.empty()) {
      // ssh names the host in its words; then hosts have not the same ones.
      unreachable_.add(answer.unreachable, host);
    } else {
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
      say(ExitCode::not_available, "cannot reach {}: {}; mend what this shows: {}", host_names(hosts), words,
          questions_.shell.by_hand(hosts.front()));
    }
    for (const auto& [command, hosts] : silent_.all()) {
      if (command.empty()) {
        say(ExitCode::timeout,
            "no answer from {} within {}: a firewall may drop what is sent there, or the host hangs; see "
            "what this "
            "does: {}, or raise --timeout",
            host_names(hosts), limit, questions_.shell.by_hand(hosts.front()));
      } else {
        say(ExitCode::timeout,
            "'{}' did not end within {} on {}: look there for a driver or a file system that hangs, or raise "
            "--timeout",
            command, limit, host_names(hosts));
      }
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
          host_names(hosts), questions_.polyring, words);
    }
    for (const auto& [other, hosts] : other_polyring_.all()) {
      say(ExitCode::not_available, "{} {} {}, but this is {}; install the same build on all hosts",
          host_names(hosts), has(hosts), other, expected_.polyring);
    }
    for (const auto& [words, hosts] : no_machine_.all()) {
      say(ExitCode::not_available, "polyring probe fails on {}: {}; run it there", host_names(hosts), words);
    }
    for (const auto& [words, hosts] : no_mpi_.all()) {
      say(ExitCode::not_available,
          "{} {} no MPI: '{} --version' says {}; install {} there, or put it on the PATH of shells that are "
          "not "
          "interactive",
          host_names(hosts), has(hosts), questions_.launcher, words, expected_.launcher.name);
    }
    for (const auto& [other, hosts] : other_mpi_.all()) {
      say(ExitCode::mpi, "{} {} {}, but the ranks are started by {} here; install the same on all hosts",
          host_names(hosts), has(hosts), other, expected_.launcher.name);
    }
  }

  static const char* has(const std::vector<std::string>& hosts) { return hosts.size() == 1 ? "has" : "have"; }

  const Questions& questions_;
  const Expected& expected_;
  Groups unreachable_, silent_, no_polyring_, other_polyring_, no_machine_, no_mpi_, other_mpi_;
  std::vector<Fault> faults_;
};

}  // namespace

std::string host_names(std::span<const std::string> names) {
  constexpr std::size_t kMost = 4;
  if (names.size() == 1) return names.front();
  const std::size_t shown = names.size() > kMost ? kMost - 1 : names.size() - 1;
  const std::string rest = names.size() > kMost ? fmt::format("{} more", names.size() - shown) : names.back();
  return fmt::format("{} and {}", fmt::join(names.subspan(0, shown), ", "), rest);
}

std::vector<std::string> differences(std::span<const HostAnswer> answers) {
  std::vector<std::string> phrases;
  for (std::string (*trait)(const Machine&) : {gpus_of, nics_of, cores_of}) {
    Groups groups;
    for (const HostAnswer& answer : answers) {
      if (answer.machine) groups.add(trait(*answer.machine), answer.host);
    }
    if (groups.all().size() < 2) continue;
    // The few first: they are what somebody should look at.
    auto sorted = groups.all();
    std::ranges::stable_sort(sorted, {}, [](const Groups::Group& group) { return group.second.size(); });
    std::vector<std::string> parts;
    for (const auto& [what, hosts] : sorted) {
      parts.push_back(fmt::format("{} {} {}", host_names(hosts), hosts.size() == 1 ? "has" : "have", what));
    }
    phrases.push_back(fmt::format("{}", fmt::join(parts, "; ")));
  }
  return phrases;
}

std::vector<Fault> find_faults(std::span<const HostAnswer> answers, const Questions& questions,
                               const Expected& expected) {
  Finder finder(questions, expected);
  for (const HostAnswer& answer : answers) finder.add(answer);
  std::vector<Fault> faults = finder.found();
  if (!expected.alike) return faults;
  for (const std::string& difference : differences(answers)) {
    faults.push_back(
        {ExitCode::usage,
         fmt::format("the hosts are not alike: {}; leave the odd ones out, mend them, or go on with "
                     "--allow-different",
                     difference)});
  }
  return faults;
}

}  // namespace polyring
