// correct: every algorithm, type and operation, and where results are wrong, which rank makes them so.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"
#include "bench/accept/blame.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/planner.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "correct";
/// An odd number of elements, and what is more than a message.
constexpr Bytes kOdd{4 * 1003};
constexpr Bytes kLong{4 * 100'003};

class CorrectCheck {
 public:
  explicit CorrectCheck(const Checking& checking)
      : checking_(checking), site_(checking.site), hosts_(site_.all_hosts()) {
    for (Rank rank = 0; rank < site_.ranks_in_all(); ++rank) all_.push_back(rank);
    for (std::size_t host = 0; host < site_.hosts.size(); ++host) {
      for (const Rank rank : site_.ranks[host]) host_of_[rank] = static_cast<int>(host);
    }
  }

  std::vector<CheckRow> run() {
    if (all_.size() < 2) {
      CheckRow row = row_of(checking_, kName, hosts_);
      row.verdict = Verdict::skipped;
      row.why = "One rank has nobody to reduce with.";
      return {row};
    }
    const std::vector<ResultCase> few{{kLong}, {kOdd}};
    std::vector<ResultCase> all{{kLong}};
    for (const ElementKind kind : kElementKinds)
      for (const ReduceOp op : kReduceOps) all.push_back({kOdd, kind, op});
    std::vector<CheckRow> rows;
    for (const std::string& algorithm : algorithms_here()) {
      const bool is_measured = algorithm == checking_.options.algorithm;
      rows.push_back(row_of_algorithm(algorithm, is_measured || checking_.has_time(1) ? all : few));
    }
    if (wrong_) {
      // First, since few rows of a check are printed.
      const std::vector<CheckRow> found = culprits();
      rows.insert(rows.begin(), found.begin(), found.end());
    }
    return rows;
  }

 private:
  /// Those of the catalogue that so many ranks can do; first the one that is measured.
  std::vector<std::string> algorithms_here() const {
    std::vector<std::string> names{checking_.options.algorithm};
    const int hosts = static_cast<int>(hosts_.size());
    const int ranks = static_cast<int>(all_.size());
    for (const Algorithm& algorithm : algorithms()) {
      const std::string name(algorithm.name);
      if (name == names.front()) continue;
      try {
        const Problem problem{name, {ranks, ranks % hosts == 0 ? ranks / hosts : 0, hosts}};
        const Plan plan = plain_plan(problem, {});
        check_plan(plan, ranks);
        check_collective(plan, Collective::allreduce);
        names.push_back(name);
      } catch (const Error&) {
        continue;  // not an allreduce, or not for so many ranks
      }
    }
    return names;
  }

  CheckRow row_of_algorithm(const std::string& algorithm, const std::vector<ResultCase>& cases) {
    CheckRow row = row_of(checking_, kName, hosts_);
    row.subject = algorithm;
    row.attempts = 1;
    checking_.progress(algorithm);
    std::vector<std::string> wrong;
    std::set<Rank> on;
    const WrongRanks wrong_on = checking_.measurer.verify({all_}, algorithm, cases).front();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (wrong_on[i].empty()) continue;
      const ResultCase& one = cases[i];
      if (!wrong_) wrong_ = one;
      wrong.push_back(fmt::format("{} {} of {}", to_text(one.kind), to_text(one.op), to_text(one.size)));
      on.insert(wrong_on[i].begin(), wrong_on[i].end());
    }
    row.verdict = wrong.empty() ? Verdict::pass : Verdict::fail;
    if (wrong.empty()) {
      row.why = fmt::format("{} had the right result on all ranks.",
                            counted(static_cast<std::int64_t>(cases.size()), "case"));
      return row;
    }
    constexpr std::size_t kMost = 3;
    const std::size_t more = wrong.size() > kMost ? wrong.size() - kMost : 0;
    wrong.resize(wrong.size() - more);
    row.why = fmt::format("Wrong results on {} of {}: {}{}.", on.size(),
                          counted(static_cast<std::int64_t>(all_.size()), "rank"), fmt::join(wrong, ", "),
                          more > 0 ? fmt::format(" and {} more", more) : "");
    row.remedy = "Take no results from this cluster until it is found what makes them wrong.";
    return row;
  }

  std::string rank_text(Rank rank) const {
    return fmt::format("rank {} on {}", rank, site_.hosts[index(host_of_.at(rank))]);
  }

  /// Ranks by twos, in a few rounds: whose pairs are wrong where others' are right is the culprit.
  std::vector<CheckRow> culprits() {
    constexpr int kRounds = 6;
    std::vector<PairOutcome> outcomes;
    for (const PairRound& round : some_pair_rounds(static_cast<int>(all_.size()), 0, kRounds)) {
      std::vector<RankGroup> groups;
      for (const HostPair& pair : round) groups.push_back({pair.first, pair.second});
      checking_.progress("ranks by twos");
      // Another algorithm may not be for two ranks.
      const std::vector<WrongRanks> wrong_on =
          checking_.measurer.verify(groups, checking_.options.algorithm, {*wrong_});
      for (std::size_t i = 0; i < round.size(); ++i) outcomes.push_back({round[i], !wrong_on[i][0].empty()});
    }
    const Suspects suspects = find_suspects(outcomes);
    std::vector<CheckRow> rows;
    for (const Rank rank : suspects.hosts) {
      CheckRow& row = rows.emplace_back(row_of(checking_, kName, {host_of_.at(rank)}));
      row.subject = rank_text(rank);
      row.verdict = Verdict::fail;
      row.why = "Results are wrong wherever this rank takes part, and right among the others.";
      row.remedy = "Take the host out, and test its processor, GPU and memory.";
    }
    for (const auto& [a, b] : suspects.links) {
      CheckRow& row = rows.emplace_back(row_of(checking_, kName, {host_of_.at(a)}));
      row.subject = fmt::format("{} and {}", rank_text(a), rank_text(b));
      if (host_of_.at(a) != host_of_.at(b)) row.hosts.push_back(site_.hosts[index(host_of_.at(b))]);
      row.verdict = Verdict::fail;
      row.why = "Results are wrong where these two reduce together, and right among the others.";
      row.remedy = "Check what joins them: links, switches and the drivers' peer access.";
    }
    return rows;
  }

  const Checking& checking_;
  const Site& site_;
  RankGroup all_;
  std::vector<int> hosts_;
  std::map<Rank, int> host_of_;
  std::optional<ResultCase> wrong_;  // the first
};

int turns(const Site&, const CheckOptions&) { return 2; }

std::vector<CheckRow> run(const Checking& checking) { return CorrectCheck(checking).run(); }

}  // namespace

const Check kCorrect{kName, "wrong results of any algorithm, type or operation, and whose they are",
                     turns, {},
                     run,   nullptr,
                     false, kOnDevice};

}  // namespace polyring
