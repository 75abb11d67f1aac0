// Judges a cluster again and again, by samples drawn from those of one real run of `polyring accept`.
//
// usage: accept_replay RESULT.json CHECK SUBJECT RUNS [SEED]
//   CHECK SUBJECT   the finding that names the fault, as "pairs.allreduce node2"; "pass" and "": a healthy
//                   run; "threshold" and a subject of pairs.allreduce: its own median is made the threshold
// Prints how many of the runs had that outcome. All samples of a pair, a host or a rank are drawn with
// replacement from those that were recorded of it. The checks are those that measure what a result keeps
// samples of.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <span>

#include "base/error.hpp"
#include "base/index.hpp"
#include "bench/accept/acceptance.hpp"
#include "bench/accept/expected_least.hpp"
#include "bench/accept/groups.hpp"
#include "bench/accept/site.hpp"
#include "bench/record/run_cluster.hpp"
#include "reports/verdicts.hpp"

namespace {

using namespace polyring;

constexpr std::array kReplayed{"hosts.alike",   "host.allreduce", "pairs.allreduce",
                               "all.allreduce", "stragglers",     "repeatability"};

Site site_of(const ResultFile& result, const std::string& file) {
  Site site;
  for (const RankHost& place : result.placement) {
    if (site.hosts.empty() || site.hosts.back() != place.host) {
      site.hosts.push_back(place.host);
      site.ranks.emplace_back();
    }
    site.ranks.back().push_back(place.rank);
  }
  site.cluster = cluster_of_run(result, file);
  site.leaf = leaves_of_run(result, site.cluster.fabric.hosts_per_leaf);
  site.source = Source::emulated;
  return site;
}

constexpr double kTurn_s = 1;

class Recorded final : public Measurer {
 public:
  Recorded(const Site& site, const std::vector<CheckRow>& rows, unsigned seed)
      : site_(site), rows_(rows), random_(seed) {}

  std::vector<GroupResult> allreduce(const std::vector<RankGroup>& groups, const GroupWork& work) override {
    std::vector<GroupResult> results;
    for (const RankGroup& group : groups) {
      std::vector<double>& us = results.emplace_back().us;
      for (const double busbw : drawn(of_group(group), work.time.value / kTurn_s))
        us.push_back(bus_us(work.size, static_cast<int>(group.size()), busbw));
    }
    return results;
  }

  std::vector<WrongRanks> verify(const std::vector<RankGroup>&, const std::string&,
                                 const std::vector<ResultCase>&) override {
    return {};
  }

  /// What the ranks took at the same time stays together, as what slows all of them for a while does.
  std::vector<std::vector<double>> compute_us(Seconds piece, int) override {
    std::vector<std::vector<double>> us(index(site_.ranks_in_all()));
    std::vector<std::size_t> times;
    for (Rank rank = 0; rank < site_.ranks_in_all(); ++rank) {
      const auto begins = fmt::format("rank {} on ", rank);
      const auto row = std::ranges::find_if(rows_, [&](const CheckRow& one) {
        return one.check == "stragglers" && one.subject.starts_with(begins);
      });
      if (row == rows_.end()) usage_error("the result has no samples of rank {}", rank);
      const std::vector<double>& ratios = row->value->samples;
      if (times.empty()) times = drawn_places(ratios.size(), 1.0 / std::max(1, row->attempts));
      for (const std::size_t time : times) us[index(rank)].push_back(ratios.at(time) * piece.value * 1e6);
    }
    return us;
  }

  TrainTimes train(const TrainWork&) override { return {}; }
  std::vector<HostReply> ask(const std::string&, const std::string&) override { return {}; }
  std::vector<HostConditions> conditions() override { return {}; }

 private:
  /// Of which check the samples of these ranks are, and which row.
  const CheckRow& of_group(const RankGroup& group) const {
    std::set<std::string> hosts;
    for (std::size_t host = 0; host < site_.hosts.size(); ++host)
      for (const Rank rank : site_.ranks[host])
        if (std::ranges::binary_search(group, rank)) hosts.insert(site_.hosts[host]);
    const bool all = hosts.size() == site_.hosts.size() && hosts.size() > 2;
    const std::string_view check = hosts.size() == 1 ? "host.allreduce"
                                   : all             ? "all.allreduce"
                                                     : "pairs.allreduce";
    for (const CheckRow& row : rows_) {
      const bool same = std::set<std::string>(row.hosts.begin(), row.hosts.end()) == hosts;
      if (row.check == check && same && row.value && !row.value->samples.empty()) return row;
    }
    usage_error("the result has no samples of {} of {} hosts", check, hosts.size());
  }

  /// As many as one attempt took, or this part of them.
  std::vector<double> drawn(const CheckRow& row, double part) {
    const std::vector<double>& all = row.value->samples;
    std::vector<double> samples;
    for (const std::size_t place : drawn_places(all.size(), part / std::max(1, row.attempts)))
      samples.push_back(all[place]);
    return samples;
  }

  /// This part of so many places, one at least, each any of them.
  std::vector<std::size_t> drawn_places(std::size_t all, double part) {
    std::uniform_int_distribution<std::size_t> any(0, all - 1);
    const double wanted = part * static_cast<double>(all);
    std::vector<std::size_t> places(std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(wanted))));
    for (std::size_t& place : places) place = any(random_);
    return places;
  }

  static double bus_us(Bytes size, int ranks, double busbw) { return busbw_GBps(size, ranks, 1) / busbw; }

  const Site& site_;
  const std::vector<CheckRow>& rows_;
  std::mt19937 random_;
};

/// Nothing but one threshold of one pair.
class OneGiven final : public GivenThresholds {
 public:
  std::optional<Threshold> of(const Judged& judged) const override {
    return judged.check == "pairs.allreduce" && judged.subject == subject ? std::optional(threshold)
                                                                          : std::nullopt;
  }
  std::optional<Bytes> size_of(std::string_view) const override { return std::nullopt; }
  std::string subject{};
  Threshold threshold{};
};

int replay(std::span<char*> words) {
  const std::string file = words[1];
  const std::string check = words[2];
  const std::string subject = words[3];
  const int runs = std::stoi(words[4]);
  const unsigned first_seed = words.size() > 5 ? static_cast<unsigned>(std::stoul(words[5])) : 1;
  const ResultFile result = read_result(file);
  const auto& rows = std::get<std::vector<CheckRow>>(result.rows);
  const Site site = site_of(result, file);
  OneGiven given;
  if (check == "threshold") {
    const auto row = std::ranges::find_if(
        rows, [&](const CheckRow& one) { return one.check == "pairs.allreduce" && one.subject == subject; });
    if (row == rows.end() || !row->value) usage_error("the result has no pair '{}'", subject);
    given.subject = subject;
    given.threshold = {row->value->median, {}, "its own median"};
  }
  std::vector<PlannedCheck> planned;
  for (const char* name : kReplayed)
    if (std::ranges::find(rows, name, &CheckRow::check) != rows.end())
      planned.push_back({find_check(name), false});
  const ExpectedLeast expected = expected_least;
  CheckOptions options;
  options.turn.value = kTurn_s;
  options.all_pairs_up_to = static_cast<int>(site.hosts.size());
  std::map<std::string, int> outcomes;
  int as_wanted = 0;
  for (int run = 0; run < runs; ++run) {
    Recorded measurer(site, rows, first_seed + static_cast<unsigned>(run));
    const Checking checking{measurer, site, given, expected, options, [](const std::string&) {}};
    std::vector<CheckRow> found;
    run_checks(planned, checking, Budget({}, [] { return Seconds{}; }),
               {[](const Check&) {},
                [&](std::vector<CheckRow> more) { found.insert(found.end(), more.begin(), more.end()); }});
    bool wanted = overall(found) == Verdict::pass;
    if (check != "pass") {
      const Verdict verdict = check == "threshold" ? Verdict::inconclusive : Verdict::fail;
      const std::string named = check == "threshold" ? "pairs.allreduce" : check;
      wanted = std::ranges::any_of(found, [&](const CheckRow& row) {
        return row.check == named && row.subject == subject && row.verdict == verdict;
      });
    }
    as_wanted += wanted ? 1 : 0;
    if (!wanted) ++outcomes[summary(found)];
  }
  fmt::print("{} of {}\n", as_wanted, runs);
  for (const auto& [sentence, times] : outcomes) fmt::print("{:6} x {}\n", times, sentence);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 6;
  try {
    return replay(std::span(argv, static_cast<std::size_t>(argc)));
  } catch (const std::exception& error) {
    fmt::print(stderr, "accept_replay: {}\n", error.what());
    return 6;
  }
}
