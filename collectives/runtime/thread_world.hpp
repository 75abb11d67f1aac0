// ThreadWorld: ranks that are threads of one process, without MPI.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/runtime/bootstraps/threads.hpp"
#include "collectives/runtime/world.hpp"

namespace polyring {

class ThreadWorld final : public World {
 public:
  /// Keeps the reference. One for each rank from 0 to the team's size − 1, each used by one thread.
  /// Collective.
  ThreadWorld(ThreadTeam& team, Rank rank);

  std::string kind() const override { return "threads of one process"; }
  Rank first_of_process(Rank) const override { return 0; }

  void barrier() const override;
  void idle_barrier() const override;
  using World::max;
  std::vector<double> max(std::span<const double> values) const override;
  std::int64_t sum(std::int64_t value) const override;
  std::int64_t broadcast(std::int64_t value) const override { return broadcast(value, timeout()); }
  std::int64_t broadcast(std::int64_t value, Seconds limit) const override;
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> own) const override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own) const override;

  std::unique_ptr<World> part(std::span<const Rank> ranks, Others others) const override;

  [[noreturn]] void give_up(const std::string& what, const std::vector<Rank>& whom) const override;

 private:
  ThreadWorld(const ThreadWorld& whole, std::span<const Rank> ranks, Others others);

  template <typename Call>
  auto attempt(Call&& call) const;
  template <typename Value, typename Take>
  void take_everyones(std::span<const Value> own, Seconds limit, Take&& take) const;

  ThreadTeam& team_;
};

}  // namespace polyring
