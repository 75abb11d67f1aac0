#include "collectives/runtime/world.hpp"

#include <unistd.h>

#include <algorithm>
#include <cassert>

namespace polyring {

World::World(const World& whole, std::span<const Rank> ranks, Others others)
    : rank_(static_cast<Rank>(std::ranges::find(ranks, whole.rank_) - ranks.begin())),
      size_(static_cast<int>(ranks.size())),
      shares_cores_(others == Others::work && whole.shares_cores_),
      timeout_(whole.timeout_),
      failed_(whole.failed_) {
  assert(std::ranges::is_sorted(ranks) && rank_ < size_);
}

void World::find_own_hosts() {
  GroupHosts found = find_hosts(*this);
  hosts_ = std::move(found.hosts);
  shares_cores_ |= found.shares_cores;
}

bool World::is_first_of_host() const {
  const auto first = std::ranges::find(hosts_.of_rank, host_number(rank_));
  return first - hosts_.of_rank.begin() == rank_;
}

void World::abort(int code) const {
  abort_others(code);
  ::_exit(code);
}

void World::end(int code) const {
  end_others(code);
  ::_exit(code);
}

WaitRules World::wait_rules() const {
  return {timeout_, shares_cores_,
          [this](const std::string& what, const std::vector<Rank>& whom) { give_up(what, whom); }, failed_};
}

}  // namespace polyring
