// A cluster that is made up, for tests of checks: hosts with links of some rate, ranks of some speed, and
// noise.
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bench/accept/check.hpp"
#include "bench/accept/pairing.hpp"

namespace polyring::testing {

class FakeMeasurer : public Measurer {
 public:
  FakeMeasurer(const Site& site, unsigned seed) : site_(site), random_(seed) {}

  double link_GBps = 10;                 // of each host
  double inside_GBps = 100;              // of a host alone
  std::map<int, double> host_link;       // of these hosts instead
  std::map<HostPair, double> pair_link;  // of what goes between two hosts
  std::map<Rank, double> slow_rank;      // takes so many times as long
  std::set<Rank> wrong_rank;             // makes results wrong
  double noise = 0.03;                   // of a logarithm
  double overhead_us = 20;
  double efficiency = 0.9;  // of a training step
  std::function<HostReply(int host, const std::string& check, const std::string& question)> reply;
  std::vector<HostConditions> of_hosts;                     // what else they did
  std::map<std::pair<std::string, int>, double> rail_GBps;  // of a host's network interface
  std::function<bool(const std::string& algorithm, const ResultCase&)>
      wrong_case;  // all of them where not set
  int orders = 0;
  std::vector<std::vector<RankGroup>> rounds;

  std::vector<GroupResult> allreduce(const std::vector<RankGroup>& groups, const GroupWork& work) override;
  std::vector<WrongRanks> verify(const std::vector<RankGroup>& groups, const std::string& algorithm,
                                 const std::vector<ResultCase>& cases) override;
  std::vector<std::vector<double>> compute_us(Seconds piece, int times) override;
  TrainTimes train(const TrainWork& work) override;
  std::vector<HostReply> ask(const std::string& check, const std::string& question) override;
  std::vector<HostConditions> conditions() override { return of_hosts; }

 private:
  int host_of(Rank rank) const;
  bool makes_wrong(const RankGroup& group) const;
  double rate_GBps(const RankGroup& group, const std::string& interface) const;
  double noisy(double value);

  const Site& site_;
  std::mt19937 random_;
};

class NothingGiven final : public GivenThresholds {
 public:
  std::optional<Threshold> of(const Judged&) const override { return std::nullopt; }
  std::optional<Bytes> size_of(std::string_view) const override { return std::nullopt; }
};

/// What the check finds, as run_checks() runs it.
std::vector<CheckRow> rows_of_check(std::string_view name, const Site& site, Measurer& measurer,
                                    const CheckOptions& options = {},
                                    const GivenThresholds& given = NothingGiven());

/// Matches a CheckRow.
inline auto row(const std::string& subject, Verdict verdict) {
  return ::testing::AllOf(::testing::Field(&CheckRow::subject, subject),
                          ::testing::Field(&CheckRow::verdict, verdict));
}

/// Hosts node0, node1, … of so many ranks each, joined by one switch.
Site make_site(const std::vector<int>& ranks_of_hosts, double link_GBps = 10);

/// So many hosts of two ranks each, probed as hosts of this preset, whose GPUs have bus addresses.
Site make_site_like(std::string_view preset, int hosts);
/// Of a GPU there, as CUDA writes it.
std::string bus_address(int gpu);

}  // namespace polyring::testing
