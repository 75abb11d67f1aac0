// pairs.allreduce: each host with each other one. It tells a slow host, a slow cable, and a leaf switch with
// slow uplinks from each other.
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/index.hpp"
#include "base/statistics.hpp"
#include "bench/accept/blame.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"
#include "bench/accept/pairing.hpp"
#include "topology/host_names.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "pairs.allreduce";
/// A suspect is measured so often with good partners.
constexpr int kRoundsOfSuspects = 2;

struct PairState {
  HostGroupUnderTest group;
  Measured measured;
  std::optional<double> median;  // of all that was measured
  CheckRow row;
};

class PairsCheck {
 public:
  explicit PairsCheck(const Checking& checking) : checking_(checking), site_(checking.site) {}

  std::vector<CheckRow> run() {
    work_.algorithm = checking_.options.algorithm;
    work_.size = payload_for(checking_, kName, {0, 1});
    work_.time = checking_.options.turn;
    for (const PairRound& round : rounds()) measure(round);
    std::vector<PairRound> again = disjoint(judge_all());
    for (int attempt = 1; !again.empty(); ++attempt) {
      if (!checking_.must_repeat(Verdict::inconclusive, attempt, static_cast<int>(again.size()))) break;
      for (const PairRound& round : again) measure(round);
      again = disjoint(judge_all());
    }
    std::vector<CheckRow> rows;
    for (const auto& [pair, state] : pairs_) rows.push_back(state.row);
    const std::vector<CheckRow> found = suspects(rows);
    rows.insert(rows.end(), found.begin(), found.end());
    return rows;
  }

 private:
  int leaf(int host) const { return site_.leaf[index(host)]; }
  bool inside_leaf(HostPair pair) const { return leaf(pair.first) == leaf(pair.second); }
  std::string name(HostPair pair) const {
    return fmt::format("{} and {}", site_.hosts[index(pair.first)], site_.hosts[index(pair.second)]);
  }

  /// Hosts of each leaf where all have as many; else 0.
  int per_leaf() const {
    std::map<int, int> hosts;
    for (const int of : site_.leaf) ++hosts[of];
    const int of_first = hosts.begin()->second;
    return std::ranges::all_of(hosts, [&](const auto& of) { return of.second == of_first; }) ? of_first : 0;
  }

  /// They are made for places in the order of leaves, since hosts may be numbered in any order.
  std::vector<PairRound> rounds() const {
    std::vector<int> places = site_.all_hosts();
    std::ranges::stable_sort(places, {}, [&](int host) { return leaf(host); });
    const int hosts = static_cast<int>(places.size());
    const bool all = hosts <= checking_.options.all_pairs_up_to;
    std::vector<PairRound> rounds = all ? all_pair_rounds(hosts, per_leaf())
                                        : some_pair_rounds(hosts, per_leaf(), checking_.options.pair_rounds);
    for (PairRound& round : rounds) {
      for (HostPair& pair : round) {
        const auto [first, second] = std::minmax({places[index(pair.first)], places[index(pair.second)]});
        pair = {first, second};
      }
    }
    return rounds;
  }

  /// How many pairs of a round leave the leaves of this one.
  int sharers(const PairRound& round, HostPair pair) const {
    if (inside_leaf(pair)) return 1;
    const auto leaving = [&](int of) {
      return std::ranges::count_if(round, [&](HostPair other) {
        return !inside_leaf(other) && (leaf(other.first) == of || leaf(other.second) == of);
      });
    };
    return static_cast<int>(std::max(leaving(leaf(pair.first)), leaving(leaf(pair.second))));
  }

  void measure(const PairRound& round) {
    std::vector<HostGroupUnderTest> groups;
    std::vector<Measured*> measured;
    for (const HostPair pair : round) {
      PairState& state = pairs_[pair];
      // What was measured beside other pairs is not to be judged as if it had the uplinks for itself.
      if (const int others = sharers(round, pair); others != state.group.sharers) state.measured = {};
      state.group = {{pair.first, pair.second}, name(pair), sharers(round, pair)};
      groups.push_back(state.group);
      measured.push_back(&state.measured);
    }
    checking_.progress(fmt::format("{}{}", name(round.front()), round.size() > 1 ? ", …" : ""));
    measure_at_once(checking_, groups, work_, measured);
    for (const HostPair pair : round) {
      PairState& state = pairs_[pair];
      const std::vector<double>& samples = state.measured.busbw_GBps;
      state.median = samples.empty() ? std::nullopt : std::optional(summarize(samples).median);
    }
    medians_.clear();
  }

  /// With three leaves the slow uplinks of one slow two thirds of the pairs that leave leaves, which then say
  /// nothing of each other. Where pods are above leaves most pairs leave their pod, too, and the faster ones
  /// are those that do not.
  bool has_faster_half(HostPair pair) const {
    return !inside_leaf(pair) && site_.cluster.fabric.pods.empty();
  }

  /// What a pair that shared uplinks with fewer others would have had of them beside so many.
  static std::optional<double> shared(const PairState& state, int sharers) {
    if (!state.median) return std::nullopt;
    return std::min(1.0, 1.0 * state.group.sharers / sharers) * *state.median;
  }

  /// The medians of all pairs inside leaves, or between them, that share uplinks with so many.
  const OfOthers& medians(bool inside, int sharers) {
    const auto known = medians_.find({inside, sharers});
    if (known != medians_.end()) return known->second;
    std::vector<double> medians;
    for (const auto& [pair, state] : pairs_)
      if (inside_leaf(pair) == inside)
        if (const auto median = shared(state, sharers)) medians.push_back(*median);
    return medians_.emplace(std::pair(inside, sharers), OfOthers(std::move(medians))).first->second;
  }

  /// The median of the other pairs that leave as many leaves as this one.
  std::optional<double> of_others(const HostGroupUnderTest& group, HostPair pair) {
    const auto own = pairs_.find(pair);
    return medians(inside_leaf(pair), group.sharers)
        .median(own == pairs_.end() ? std::nullopt : shared(own->second, group.sharers),
                has_faster_half(pair) ? OfOthers::Part::larger_half : OfOthers::Part::all);
  }

  Threshold threshold_of(const HostGroupUnderTest& group, HostPair pair) {
    const std::string who =
        has_faster_half(pair) ? "the faster half of the other pairs between leaves" : "the other pairs";
    return checking_.threshold({std::string(kName), kBusbw, work_.size.value, name(pair)},
                               least_of(checking_, group, work_, of_others(group, pair), who));
  }

  /// Judges all pairs; those that are too noisy.
  std::vector<HostPair> judge_all() {
    std::vector<HostPair> noisy;
    for (auto& [pair, state] : pairs_) {
      const Threshold threshold = threshold_of(state.group, pair);
      state.row = row_of(checking_, kName, state.group.hosts);
      state.row.subject = name(pair);
      judge_measured(state.row, state.measured, work_.size, threshold);
      if (state.row.verdict == Verdict::inconclusive) noisy.push_back(pair);
    }
    return noisy;
  }

  /// Rounds of these pairs, each pair in the first in which its hosts are free.
  static std::vector<PairRound> disjoint(const std::vector<HostPair>& pairs) {
    std::vector<PairRound> rounds;
    std::vector<std::set<int>> busy;  // hosts of each
    for (const HostPair pair : pairs) {
      std::size_t round = 0;
      while (round < busy.size() && (busy[round].contains(pair.first) || busy[round].contains(pair.second)))
        ++round;
      if (round == busy.size()) {
        rounds.emplace_back();
        busy.emplace_back();
      }
      rounds[round].push_back(pair);
      busy[round].insert({pair.first, pair.second});
    }
    return rounds;
  }

  std::vector<PairOutcome> outcomes() const {
    std::vector<PairOutcome> outcomes;
    for (const auto& [pair, state] : pairs_) outcomes.push_back({pair, state.row.verdict == Verdict::fail});
    return outcomes;
  }

  /// Whether the pair is bad again, measured by itself.
  bool bad_again(HostPair pair) {
    const HostGroupUnderTest group{{pair.first, pair.second}, name(pair)};
    Measured again;
    checking_.progress(name(pair) + " again");
    measure_at_once(checking_, {group}, work_, {&again});
    const Threshold threshold = threshold_of(group, pair);
    return again.wrong > 0 || again.busbw_GBps.empty() ||
           summarize(again.busbw_GBps).median < threshold.least.value_or(0);
  }

  /// Rows about hosts and leaves, and what is found of pairs in `rows`.
  std::vector<CheckRow> suspects(std::vector<CheckRow>& rows) {
    const std::vector<PairOutcome> all = outcomes();
    const Suspects found = find_suspects(all, site_.leaf);
    std::vector<CheckRow> more;
    if (found.everybody) {
      CheckRow& row = more.emplace_back(row_of(checking_, kName, site_.all_hosts()));
      row.verdict = Verdict::fail;
      double least = std::numeric_limits<double>::max();
      double most = 0;
      for (const CheckRow& of_pair : rows) {
        if (!of_pair.value) continue;
        least = std::min(least, of_pair.value->median);
        most = std::max(most, of_pair.value->median);
      }
      const CheckRow& first = rows.front();
      row.why = fmt::format(
          "Most pairs are too slow, so that no host stands out: busbw is {} to {} GB/s, and must be at "
          "least {} GB/s ({}).",
          significant(least, 4), significant(most, 4), significant(first.least.value_or(0), 4),
          first.threshold_source);
      row.remedy = "See what all hosts share: switches, the MPI's choice of network, firmware, clocks.";
      return more;
    }
    for (const int host : found.hosts) more.push_back(row_of_host(host, found, all));
    const bool two = std::set<int>(site_.leaf.begin(), site_.leaf.end()).size() == 2;
    if (two && !found.leaves.empty()) more.push_back(row_of_uplinks(found.leaves, all));
    for (const int of : found.leaves)
      if (!two) more.push_back(row_of_uplinks({of}, all));
    for (const HostPair link : found.links) tell_link(link, found, all, rows);
    return more;
  }

  /// Of one leaf, or of the only two.
  CheckRow row_of_uplinks(const std::vector<int>& leaves, const std::vector<PairOutcome>& all) const {
    std::vector<int> hosts;
    std::vector<std::string> names;  // of each leaf's hosts
    for (const int of : leaves) {
      std::vector<std::string> of_leaf;
      for (const int host : site_.all_hosts()) {
        if (leaf(host) != of) continue;
        hosts.push_back(host);
        of_leaf.push_back(site_.hosts[index(host)]);
      }
      names.push_back(names_text(of_leaf));
    }
    int leaving = 0;
    int bad = 0;
    for (const PairOutcome& one : all) {
      if (inside_leaf(one.pair)) continue;
      if (leaf(one.pair.first) != leaves.front() && leaf(one.pair.second) != leaves.front()) continue;
      ++leaving;
      bad += one.bad ? 1 : 0;
    }
    CheckRow row = row_of(checking_, kName, hosts);
    row.verdict = Verdict::fail;
    if (leaves.size() == 2) {
      row.subject = fmt::format("uplinks between the leaves of {} and of {}", names[0], names[1]);
      row.why = fmt::format(
          "{} of the {} pairs between these leaves are too slow or wrong, and those of good hosts inside "
          "one leaf are not. With only two leaves nobody can say whose uplinks are slow.",
          bad, leaving);
    } else {
      row.subject = fmt::format("uplinks of the leaf of {}", names[0]);
      row.why = fmt::format(
          "{} of the {} pairs that leave this leaf are too slow or wrong, and those of good hosts inside it "
          "are not.",
          bad, leaving);
    }
    row.remedy = "Check the leaf switch's uplinks: their cables, and the ports of the spine switches.";
    return row;
  }

  /// With whom a host is not to be measured again: suspects, and hosts that it reaches by suspected uplinks.
  std::vector<int> banned_for(int host, const Suspects& found) const {
    const auto is_suspect = [&](int of) { return std::ranges::find(found.leaves, of) != found.leaves.end(); };
    std::vector<int> banned = found.hosts;
    for (const int other : site_.all_hosts()) {
      if (leaf(other) != leaf(host) && (is_suspect(leaf(other)) || is_suspect(leaf(host))))
        banned.push_back(other);
    }
    return banned;
  }

  CheckRow row_of_host(int host, const Suspects& found, const std::vector<PairOutcome>& all) {
    const auto met = std::ranges::count_if(
        all, [&](const PairOutcome& one) { return one.pair.first == host || one.pair.second == host; });
    const auto bad = std::ranges::count_if(all, [&](const PairOutcome& one) {
      return one.bad && (one.pair.first == host || one.pair.second == host);
    });
    int again = 0;
    const std::vector<int> partners = partners_for(host, all, banned_for(host, found));
    int rounds = 0;
    for (; rounds < kRoundsOfSuspects && !partners.empty() && checking_.has_time(1); ++rounds) {
      const int partner = partners[index(rounds) % partners.size()];
      again += bad_again({std::min(host, partner), std::max(host, partner)}) ? 1 : 0;
    }
    CheckRow row = row_of(checking_, kName, {host});
    const bool confirmed = rounds == 0 || again > 0;
    row.verdict = confirmed ? Verdict::fail : Verdict::inconclusive;
    const std::string later =
        rounds > 0         ? fmt::format("measured again with good partners, {} of {} were", again, rounds)
        : partners.empty() ? "no host was good with all others, to measure it with again"
                           : "the budget had no time to measure it again";
    row.why = fmt::format("{} of its {} pairs are too slow or wrong, and those of other hosts are not; {}.",
                          bad, met, later);
    row.remedy = confirmed ? "Take the host out, and check its network ports, their PCIe links, and its load."
                           : "It was slow for a while: repeat the check, and see what else ran there.";
    return row;
  }

  /// Says in the pair's row what is known of the two hosts beside it.
  void tell_link(HostPair link, const Suspects& found, const std::vector<PairOutcome>& all,
                 std::vector<CheckRow>& rows) {
    const auto at = std::ranges::find(rows, name(link), &CheckRow::subject);
    if (site_.hosts.size() == 2) {
      at->remedy = "Of two hosts nobody can say which is slow: measure each with a third one.";
      return;
    }
    if (pairs_.at(link).measured.wrong > 0) return;
    if (!checking_.has_time(1)) {
      at->why += " The budget had no time to measure it again.";
      return;
    }
    int again = 0;
    for (int round = 0; round < kRoundsOfSuspects; ++round) again += bad_again(link) ? 1 : 0;
    if (again == 0) {
      at->verdict = Verdict::inconclusive;
      at->why += fmt::format(" It was not slow in {} rounds more.", kRoundsOfSuspects);
      at->remedy = "It was slow for a while: repeat the check, and see what else used the network.";
      return;
    }
    std::vector<std::string> bad_hosts;
    for (const int host : {link.first, link.second}) {
      int bad = 0;
      const std::vector<int> partners = partners_for(host, all, banned_for(host, found));
      for (const int partner : partners)
        bad += bad_again({std::min(host, partner), std::max(host, partner)}) ? 1 : 0;
      if (!partners.empty() && bad == static_cast<int>(partners.size()))
        bad_hosts.push_back(site_.hosts[index(host)]);
    }
    at->remedy =
        bad_hosts.empty()
            ? "Both hosts are fast with others: check the cables and switch ports between them."
            : fmt::format("{} was slow with others, too, when it was measured again: check it first.",
                          fmt::join(bad_hosts, " and "));
  }

  const Checking& checking_;
  const Site& site_;
  GroupWork work_;
  std::map<HostPair, PairState> pairs_;
  std::map<std::pair<bool, int>, OfOthers> medians_;  // see medians(); of what is measured so far
};

int turns(const Site& site, const CheckOptions& options) {
  const int hosts = static_cast<int>(site.hosts.size());
  return hosts <= options.all_pairs_up_to ? hosts : options.pair_rounds;
}

std::vector<CheckRow> run(const Checking& checking) {
  if (checking.site.hosts.size() < 2) {
    CheckRow row = row_of(checking, kName, {0});
    row.verdict = Verdict::skipped;
    row.why = "There is one host.";
    return {row};
  }
  return PairsCheck(checking).run();
}

}  // namespace

const Check kPairsAllreduce{
    kName,    "each host with each other one: slow hosts, slow cables", turns, {kBusbw}, run, nullptr, false,
    kOnDevice};

}  // namespace polyring
