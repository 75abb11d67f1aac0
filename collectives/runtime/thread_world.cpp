#include "collectives/runtime/thread_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.hpp"

namespace polyring {

ThreadWorld::ThreadWorld(ThreadTeam& team, Rank rank) : World(rank, team.size()), team_(team) {
  find_own_hosts();
}

ThreadWorld::ThreadWorld(const ThreadWorld& whole, std::span<const Rank> ranks, Others others)
    : World(whole, ranks, others), team_(whole.team_.part(ranks)) {
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

/// Collective. Calls `take` with each rank's values, by rank; they are equally many.
template <typename Value, typename Take>
void ThreadWorld::take_everyones(std::span<const Value> own, Seconds limit, Take&& take) const {
  const ThreadTeam::Everyones all =
      attempt([&] { return team_.allgather(rank(), std::as_bytes(own), limit); });
  std::vector<Value> values(own.size());
  for (const std::vector<std::byte>& bytes : *all) {
    if (bytes.size() != own.size_bytes())
      throw Error(ExitCode::internal, "the ranks call different things of their world");
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    take(values);
  }
}

void ThreadWorld::barrier() const {
  attempt([&] { team_.barrier(rank(), timeout(), shares_cores()); });
}

void ThreadWorld::idle_barrier() const {
  attempt([&] { team_.barrier(rank(), timeout(), true); });
}

std::vector<double> ThreadWorld::max(std::span<const double> values) const {
  std::vector<double> most(values.begin(), values.end());
  take_everyones(values, timeout(), [&](const std::vector<double>& of_rank) {
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], of_rank[i]);
  });
  return most;
}

std::int64_t ThreadWorld::sum(std::int64_t value) const {
  std::int64_t total = 0;
  take_everyones(std::span<const std::int64_t>(&value, 1), timeout(),
                 [&](const std::vector<std::int64_t>& of_rank) { total += of_rank.front(); });
  return total;
}

std::int64_t ThreadWorld::broadcast(std::int64_t value, Seconds limit) const {
  std::optional<std::int64_t> roots;
  take_everyones(std::span<const std::int64_t>(&value, 1), limit,
                 [&](const std::vector<std::int64_t>& of_rank) { roots = roots.value_or(of_rank.front()); });
  return *roots;
}

std::vector<std::vector<std::byte>> ThreadWorld::allgather(std::span<const std::byte> own) const {
  return *attempt([&] { return team_.allgather(rank(), own, timeout()); });
}

std::vector<std::vector<std::byte>> ThreadWorld::gather(std::span<const std::byte> own) const {
  std::vector<std::vector<std::byte>> all = allgather(own);
  if (rank() != 0) all.clear();
  return all;
}

std::unique_ptr<World> ThreadWorld::part(std::span<const Rank> ranks, Others others) const {
  return std::unique_ptr<World>(new ThreadWorld(*this, ranks, others));
}

void ThreadWorld::give_up(const std::string& what, const std::vector<Rank>& whom) const {
  throw Error(ExitCode::timeout,
              fmt::format("waited {} for {}: stuck, or its core is busy; or raise the time limit",
                          to_text(timeout()), whom.empty() ? what : ranks_text(whom, hosts())));
}

}  // namespace polyring
