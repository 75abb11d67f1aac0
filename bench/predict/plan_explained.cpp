#include "bench/predict/plan_explained.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/index.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "reports/tables.hpp"
#include "topology/path.hpp"
#include "topology/peer_access.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

/// Of more ranks only the chosen plan has been simulated; the others have their price.
constexpr int kMostRanksSimulated = 1024;
/// Closer than this the model does not tell times apart (docs/model.md).
constexpr double kAlike = 1.02;
constexpr std::size_t kMostShown = 8;

Schedule schedule_of(const Plan& plan, const PlannedFor& planned) {
  return make_schedule(plan, planned.cluster.ranks(), planned.count, planned.sizes.payload);
}

struct Candidate {
  const ConsideredPlan* plan;
  Seconds time;
  bool simulated = false;
};

Candidate timed(const ConsideredPlan& plan, const PlannedFor& planned) {
  if (plan.simulation) return {&plan, plan.simulation->time, true};
  if (planned.cluster.ranks() > kMostRanksSimulated) return {&plan, plan.price.time, false};
  const Schedule schedule = schedule_of(plan.plan, planned);
  return {&plan, simulate(schedule, planned.cluster, planned.router, planned.sizes).time, true};
}

/// The best of each way, the winner first.
std::vector<Candidate> best_of_each_way(std::span<const ConsideredPlan> considered,
                                        const PlannedFor& planned) {
  const auto same_way = [](const Plan& a, const Plan& b) {
    return a.dims == b.dims && a.patterns == b.patterns && a.orders == b.orders;
  };
  std::vector<Candidate> best;
  for (const ConsideredPlan& plan : considered) {
    const bool known = std::any_of(best.begin(), best.end(), [&](const Candidate& candidate) {
      return same_way(candidate.plan->plan, plan.plan);
    });
    if (!known && best.size() < kMostShown) best.push_back(timed(plan, planned));
  }
  // What was simulated comes before prices, which leave things out.
  std::stable_sort(best.begin() + 1, best.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(!a.simulated, a.time.value) < std::tuple(!b.simulated, b.time.value);
  });
  return best;
}

std::string busiest_text(const Price& price, const Router& router) {
  return price.bottleneck < 0 ? "latency" : router.name(price.bottleneck);
}

std::string order_kind(const Plan& plan) { return plan.orders.empty() ? "by rank" : "rings"; }

std::string way_text(const Plan& plan) {
  return fmt::format("{} {} {}{}", plan.algorithm, dims_text(plan.dims), order_kind(plan),
                     is_all_rings(plan) ? "" : " (" + patterns_text(plan) + ")");
}

std::string candidates_table(const std::vector<Candidate>& candidates, const Router& router) {
  Table table({{"", "", "", Align::left},
               {"", "dims", "", Align::left},
               {"", "patterns", "", Align::left},
               {"", "order", "", Align::left},
               {"", "lanes", "", Align::right},
               {"", "chunk", "", Align::right},
               {"", "time", "", Align::right},
               {"", "", "", Align::left},
               {"", "busy longest", "", Align::left}});
  for (const Candidate& candidate : candidates) {
    const Plan& plan = candidate.plan->plan;
    table.add_row({&candidate == &candidates.front() ? "chosen" : "", dims_text(plan.dims),
                   patterns_text(plan), order_kind(plan), fmt::format("{}", plan.lanes),
                   plan.chunk.value == 0 ? "whole" : to_text(plan.chunk), to_text(candidate.time),
                   candidate.simulated ? "simulated" : "priced",
                   busiest_text(candidate.plan->price, router)});
  }
  return table.text();
}

std::string megabytes(double bytes) { return significant(bytes / 1e6, 4) + " MB"; }
std::string times_text(Seconds a, Seconds b) { return significant(a.value / b.value); }

/// What the winner spares where the other one is busy longest.
std::string comparison(const Candidate& winner, const Candidate& other, const PlannedFor& planned) {
  const auto busy = [&](const Candidate& candidate) {
    return busy_times(schedule_of(candidate.plan->plan, planned), planned.cluster, planned.router,
                      planned.sizes);
  };
  const std::vector<Seconds> of_winner = busy(winner);
  const std::vector<Seconds> of_other = busy(other);
  const ResourceId limit = other.plan->price.bottleneck;
  const std::string name = way_text(other.plan->plan);
  if (limit < 0) return fmt::format("{} waits for latency alone, and takes more steps", name);
  const Seconds there = of_other[index(limit)];
  const Seconds here = of_winner[index(limit)];
  const std::string resource = planned.router.name(limit);
  if (here.value * kAlike >= there.value) {
    return fmt::format(
        "{} keeps {} busy no longer ({}, here {}): what it takes more is for latency and for filling its "
        "pipeline, {} and here {}",
        name, resource, to_text(there), to_text(here), to_text(other.time - there),
        to_text(winner.time - here));
  }
  if (here.value == 0)
    return fmt::format("{} keeps {} busy for {}, and the chosen plan does not use it", name, resource,
                       to_text(there));
  const double bandwidth = planned.router.bandwidth(limit).value;
  return fmt::format("{} sends {} over {}, {} times the {} of the chosen plan", name,
                     megabytes(there.value * bandwidth), resource, times_text(there, here),
                     megabytes(here.value * bandwidth));
}

/// Ranks of the first host as a dimension's first group passes them; closed: from the last to the first
/// again.
struct WayInHost {
  std::vector<int> ranks;
  bool closed = true;
};

WayInHost way_in_host(const Dimension& dimension, int in_host) {
  WayInHost way;
  way.closed = dimension.pattern().follows_order() && dimension.pattern().outcome() == Outcome::scattered;
  for (int position = 0; position < dimension.size(); ++position) {
    const Rank rank = dimension.rank_at(0, position);
    if (rank < in_host) {
      way.ranks.push_back(rank);
    } else {
      way.closed = false;
    }
  }
  way.closed = way.closed && way.ranks.size() > 2;
  if (way.closed) way.ranks.push_back(way.ranks.front());
  return way;
}

/// "8 steps NVL 20.0 GB/s".
std::string steps_text(const std::vector<int>& ranks, const Machine& machine) {
  std::map<std::pair<PathType, double>, int> steps;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    const auto path = find_path(machine, machine.rank_device(ranks[i - 1]), machine.rank_device(ranks[i]));
    if (path) ++steps[{path->type, path->bandwidth.value}];
  }
  std::vector<std::string> texts;
  for (const auto& [kind, times] : steps) {
    const auto& [type, bandwidth] = kind;
    texts.push_back(fmt::format("{} step{} {} {}", times, times == 1 ? "" : "s", to_text(type),
                                bandwidth > 0 ? to_text(Bandwidth{bandwidth}) : "of unknown speed"));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// "mlx5_0 and mlx5_1".
std::string names_of_nics(const Machine& machine, const std::vector<int>& nics) {
  std::vector<std::string> names;
  for (const int nic : nics) names.push_back(machine.nics[index(nic)].name);
  return fmt::format("{}", fmt::join(names, " and "));
}

/// Of one lane in one dimension; empty for a dimension between hosts.
std::string lane_text(std::size_t lane, const Dimension& dimension, const Machine& machine,
                      const std::vector<std::vector<int>>& nics) {
  const WayInHost way = way_in_host(dimension, machine.ranks());
  if (way.ranks.size() < 2) return {};
  if (!dimension.pattern().follows_order())
    return fmt::format("lane {}: {} among {}\n", lane, dimension.pattern().name(),
                       fmt::join(way.ranks, ", "));
  std::string text =
      fmt::format("lane {}: {}, {}", lane, fmt::join(way.ranks, "-"), steps_text(way.ranks, machine));
  if (!way.closed && dimension.size() > machine.ranks() && !nics.empty()) {
    text +=
        fmt::format("; enters by {}, leaves by {}", names_of_nics(machine, nics[index(way.ranks.front())]),
                    names_of_nics(machine, nics[index(way.ranks.back())]));
  }
  return text + "\n";
}

std::string lanes_text(const Schedule& schedule, const PlannedFor& planned) {
  const Machine& machine = planned.cluster.host(0);
  const std::vector<std::vector<int>> nics = rank_nics(machine);
  std::string text;
  for (std::size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (const Dimension& dimension : schedule.lanes[lane].dimensions)
      text += lane_text(lane, dimension, machine, nics);
  }
  return text;
}

/// What each NIC of the first host sends.
std::string nics_text(const std::vector<Seconds>& busy, const PlannedFor& planned) {
  const Machine& machine = planned.cluster.host(0);
  std::vector<std::string> texts;
  for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic) {
    const Bandwidth bandwidth = machine.nics[index(nic)].bandwidth();
    if (!bandwidth.known()) continue;
    const Seconds out = busy[index(planned.router.of_nic(0, nic, true))];
    texts.push_back(
        fmt::format("{} {}", machine.nics[index(nic)].name, megabytes(out.value * bandwidth.value)));
  }
  return fmt::format("sent by each NIC of host 0: {}\n", fmt::join(texts, ", "));
}

std::string idle_links_text(const std::vector<Seconds>& busy, const PlannedFor& planned) {
  const Machine& machine = planned.cluster.host(0);
  std::map<LinkKind, std::vector<std::string>> idle;
  for (int link = 0; link < static_cast<int>(machine.links.size()); ++link) {
    const Link& of = machine.links[index(link)];
    const bool used = busy[index(planned.router.of_link(0, link, true))].value > 0 ||
                      busy[index(planned.router.of_link(0, link, false))].value > 0;
    if (used || !of.bandwidth.known()) continue;
    idle[of.kind].push_back(fmt::format("{}-{}", machine.device_name(of.from), machine.device_name(of.to)));
  }
  std::string text = "links of host 0 that no lane uses:";
  for (const auto& [kind, links] : idle)
    text += fmt::format("\n  {}: {}", to_text(kind), fmt::join(links, ", "));
  return text + (idle.empty() ? " none\n" : "\n");
}

}  // namespace

std::string explain_choice(std::span<const ConsideredPlan> considered, const PlannedFor& planned) {
  const std::vector<Candidate> candidates = best_of_each_way(considered, planned);
  std::string text =
      fmt::format("{} plan{} considered; the best of each way:\n\n{}\n", considered.size(),
                  considered.size() == 1 ? "" : "s", candidates_table(candidates, planned.router));
  if (candidates.size() == 1) return text + "No other way was left to choose.\n";
  Candidate winner = candidates[0];
  const Candidate& other = candidates[1];
  // Like with like.
  if (!other.simulated) winner.time = winner.plan->price.time;
  const std::string names[] = {way_text(winner.plan->plan), way_text(other.plan->plan)};
  const Plan& better = other.plan->plan;
  const char* option = better.dims != winner.plan->plan.dims           ? "--dims"
                       : better.patterns != winner.plan->plan.patterns ? "--patterns"
                                                                       : "--orders";
  if (other.time.value * kAlike < winner.time.value)
    return text + fmt::format("{1} {2} than {0}, which was simulated first; ask for it by {3}.\n", names[0],
                              names[1], other.simulated ? "turns out faster" : "has a lower price", option);
  if (other.time.value < winner.time.value * kAlike)
    return text + fmt::format("{} and the next, {}, are equal within 2 %.\n", names[0], names[1]);
  return text + fmt::format("{} is {} times as fast as the next: {}.\n", way_text(winner.plan->plan),
                            times_text(other.time, winner.time), comparison(winner, other, planned));
}

std::string draw_rings(const Plan& plan, const PlannedFor& planned) {
  const Schedule schedule = schedule_of(plan, planned);
  const std::vector<Seconds> busy = busy_times(schedule, planned.cluster, planned.router, planned.sizes);
  std::string text = fmt::format("ranks of host 0 that reach each other's memory, as a model assumes: {}\n",
                                 PeerAccess(planned.cluster).text());
  text += lanes_text(schedule, planned);
  if (planned.cluster.host_count() > 1) text += nics_text(busy, planned);
  return text + idle_links_text(busy, planned);
}

}  // namespace polyring
