#include "collectives/runtime/thread_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace polyring {

ThreadWorld::ThreadWorld(ThreadTeam& team, Rank rank) : World(rank, team.size()), team_(team) {
  find_own_hosts();
}

ThreadWorld::ThreadWorld(const ThreadWorld& whole, ThreadTeam& team)
    : World(whole, team.size()), team_(team) {
  find_own_hosts();
}

template <typename Call>
auto ThreadWorld::attempt(Call&& call) const {
  try {
    return call();
  } catch (...) {
    tell_failure();
    throw;
  }
}

/// All ranks give equally many.
template <typename Value>
std::vector<std::vector<Value>> ThreadWorld::everyones(std::span<const Value> own, Seconds limit) const {
  const auto all = attempt([&] { return team_.allgather(rank(), std::as_bytes(own), limit); });
  std::vector<std::vector<Value>> values(all.size(), std::vector<Value>(own.size()));
  for (std::size_t of_rank = 0; of_rank < all.size(); ++of_rank) {
    if (!own.empty()) std::memcpy(values[of_rank].data(), all[of_rank].data(), all[of_rank].size());
  }
  return values;
}

void ThreadWorld::barrier() const {
  attempt([&] { team_.barrier(rank(), timeout(), shares_cores()); });
}

void ThreadWorld::idle_barrier() const {
  attempt([&] { team_.barrier(rank(), timeout(), true); });
}

std::vector<double> ThreadWorld::max(std::span<const double> values) const {
  std::vector<double> most(values.begin(), values.end());
  for (const std::vector<double>& of_rank : everyones(values, timeout())) {
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], of_rank[i]);
  }
  return most;
}

std::int64_t ThreadWorld::sum(std::int64_t value) const {
  std::int64_t total = 0;
  for (const auto& of_rank : everyones(std::span<const std::int64_t>(&value, 1), timeout()))
    total += of_rank.front();
  return total;
}

std::int64_t ThreadWorld::broadcast(std::int64_t value, Seconds limit) const {
  return everyones(std::span<const std::int64_t>(&value, 1), limit).front().front();
}

std::vector<std::vector<std::byte>> ThreadWorld::allgather(std::span<const std::byte> own) const {
  return attempt([&] { return team_.allgather(rank(), own, timeout()); });
}

std::vector<std::vector<std::byte>> ThreadWorld::gather(std::span<const std::byte> own) const {
  std::vector<std::vector<std::byte>> all = allgather(own);
  if (rank() != 0) all.clear();
  return all;
}

std::unique_ptr<World> ThreadWorld::first(int ranks) const {
  return std::unique_ptr<World>(new ThreadWorld(*this, team_.first(ranks)));
}

void ThreadWorld::give_up(const std::string& what, const std::vector<Rank>& whom) const {
  throw Error(ExitCode::timeout,
              fmt::format("waited {} for {}; see what its thread does, or raise the time limit",
                          to_text(timeout()), whom.empty() ? what : ranks_text(whom, hosts())));
}

}  // namespace polyring
