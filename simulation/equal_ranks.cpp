#include "simulation/equal_ranks.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>

#include "base/index.hpp"
#include "simulation/switch_tree.hpp"

namespace polyring {
namespace {

/// A factor of the numbers of all ranks: the coordinate (rank / stride) mod size.
struct Digit {
  int stride = 1;
  int size = 1;
  int dimension = -1;  // of every lane; -1: that of groups which do the same side by side
};

/// Nothing where the lanes have other dimensions than each other. Their strides rise.
std::optional<std::vector<Digit>> digits_of(const Schedule& schedule) {
  std::vector<Digit> digits;
  int below = 1;
  const auto add = [&](int until, int dimension) {
    assert(until >= below && until % below == 0);
    if (until > below) digits.push_back({below, until / below, dimension});
    below = until;
  };
  const std::vector<Dimension>& dimensions = schedule.lanes.front().dimensions;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    for (const Lane& lane : schedule.lanes) {
      if (lane.dimensions.size() != dimensions.size() || lane.dimensions[i].size() != dimensions[i].size() ||
          lane.dimensions[i].stride() != dimensions[i].stride())
        return std::nullopt;
    }
    add(dimensions[i].stride(), -1);
    add(dimensions[i].stride() * dimensions[i].size(), static_cast<int>(i));
  }
  add(schedule.ranks, -1);
  return digits;
}

/// Whether members of the dimension's groups do the same when they are `step` further on.
bool turns(const Dimension& dimension, int step) {
  const int size = dimension.size();
  const auto position = [&](int coordinate) {
    return dimension.position(coordinate % size * dimension.stride());
  };
  const int further = position(step) - position(0) + size;
  for (int i = 0; i < size; ++i) {
    if ((position(i) + further) % size != position(i + step)) return false;
  }
  return dimension.pattern().cyclic();
}

bool turns(const Schedule& schedule, const Digit& digit, int step) {
  return digit.dimension < 0 || std::ranges::all_of(schedule.lanes, [&](const Lane& lane) {
           return turns(lane.dimensions[index(digit.dimension)], step);
         });
}

}  // namespace

EqualRanks::EqualRanks(int ranks) : firsts_(index(ranks)) { std::iota(firsts_.begin(), firsts_.end(), 0); }

EqualRanks::EqualRanks(const Schedule& schedule, const Cluster& cluster, const Router& router)
    : router_(&router), levels_(router.hosts_per_level()) {
  const auto digits = digits_of(schedule);
  if (digits && cluster.groups.size() == 1 && !uses_switches(schedule)) {
    in_host_.resize(index(router.resources_per_host(0)));
    for (std::size_t i = 0; i < in_host_.size(); ++i) in_host_[i].first = static_cast<ResourceId>(i);
    for (const Digit& digit : *digits) {
      // The smallest step makes the largest classes.
      for (int step = 1; step < digit.size; ++step) {
        if (digit.size % step != 0 || !turns(schedule, digit, step)) continue;
        if (add_turn({digit.stride * step, digit.stride * digit.size}, cluster)) break;
      }
    }
    count_in_host();
  }
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    if (first_member(turns_, rank) == rank) firsts_.push_back(rank);
  }
}

bool EqualRanks::add_turn(Turn turn, const Cluster& cluster) {
  const int per_host = cluster.host(0).ranks();
  if (turn.step % per_host == 0) {
    const Turn of_hosts{turn.step / per_host, turn.block / per_host};
    if (!of_hosts.keeps_groups_of(cluster.hosts_per_domain()) ||
        !std::ranges::all_of(levels_, [&](int hosts) { return of_hosts.keeps_groups_of(hosts); }))
      return false;
    host_turns_.push_back(of_hosts);
  } else {
    if (per_host % turn.block != 0) return false;
    std::vector<int> to;
    for (int rank = 0; rank < per_host; ++rank)
      to.push_back(rank - rank % turn.block + (rank + turn.step) % turn.block);
    const auto moved = router_->moved(0, to);
    if (!moved) return false;
    join_in_host(*moved);
    turned_in_host_ *= turn.number();
  }
  turns_.push_back(turn);
  return true;
}

void EqualRanks::join_in_host(std::span<const int> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto [first, other] = std::minmax({in_host_[i].first, in_host_[index(to[i])].first});
    for (Met& met : in_host_) met.first = met.first == other ? first : met.first;
  }
}

void EqualRanks::count_in_host() {
  for (Met& met : in_host_) {
    const auto of_class = std::ranges::count(in_host_, met.first, &Met::first);
    met.times = turned_in_host_ / static_cast<int>(of_class);
  }
}

int EqualRanks::first_member(std::span<const Turn> turns, int member) {
  for (const Turn& turn : turns) member -= member % turn.block / turn.step * turn.step;
  return member;
}

int EqualRanks::class_of(Rank rank) const {
  int number = first_member(turns_, rank);
  for (auto turn = turns_.rbegin(); turn != turns_.rend(); ++turn)
    number = number / turn->block * turn->step + number % turn->step;
  return number;
}

EqualRanks::Met EqualRanks::met(ResourceId resource) const {
  if (all_differ()) return {resource, 1};
  Router::Home home = router_->home(resource);
  if (home.level == Router::kHost) {
    const Met& met = in_host_[index(home.resource)];
    const int host = first_member(host_turns_, home.place);
    return {resource + (host - home.place) * static_cast<int>(in_host_.size()) + met.first - home.resource,
            met.times};
  }
  const int hosts = levels_[index(home.level)];
  home.place = first_member(host_turns_, home.place * hosts) / hosts;
  return {router_->at(home), times_of_uplinks(home.level)};
}

int EqualRanks::times_of_uplinks(int level) const {
  int times = turned_in_host_;
  for (const Turn& turn : host_turns_) {
    if (turn.stays_in(levels_[index(level)])) times *= turn.number();
  }
  return times;
}

EqualRanks equal_ranks(const Schedule& schedule, const Divided& divided, const Cluster& cluster,
                       const Router& router, bool classes) {
  return classes && divided.equal_blocks ? EqualRanks(schedule, cluster, router) : EqualRanks(schedule.ranks);
}

}  // namespace polyring
