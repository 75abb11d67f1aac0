// MpiWorld: ranks that mpirun started.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "collectives/runtime/world.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// True when this process was started by mpirun, mpiexec or srun; known without initialising MPI.
bool launched_by_mpi();
/// Its rank then, before MPI is initialised; 0 otherwise.
Rank launched_rank();
/// How many ranks the launcher says that it has started; 1 where it does not say, and where there was none.
int launched_ranks();
/// Its number among the ranks of its host, as the launcher sets it; 0 where it does not say.
int launched_local_rank();
/// "srun", "Open MPI's mpirun", …; for people, when a launcher has started this process.
std::string launched_by();

/// A group of MPI's ranks. Every failing call throws Error(ExitCode::mpi) that names the call.
class MpiWorld final : public World {
 public:
  struct Handle;  // its communicators, see handle.hpp

  /// All ranks. Initialises MPI, and finalises it in the end: one at a time.
  MpiWorld();
  /// The ranks of a communicator of a program that has initialised MPI: Handle::of(comm). Collective over
  /// these. MPI is used by the thread that uses the world, and no setting of it is changed.
  explicit MpiWorld(std::unique_ptr<Handle> handle);
  /// See part().
  MpiWorld(const MpiWorld& whole, std::span<const Rank> ranks, Others others);
  ~MpiWorld() override;
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  std::string kind() const override { return library(); }

  void barrier() const override;
  void idle_barrier() const override;
  void barrier_without_limit() const override;
  using World::max;
  std::vector<double> max(std::span<const double> values) const override;
  std::int64_t sum(std::int64_t value) const override;
  std::int64_t broadcast(std::int64_t value) const override;
  std::int64_t broadcast(std::int64_t value, Seconds limit) const override;
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> own) const override {
    return allgather(own, kMostAtOnce);
  }
  /// Each call of MPI takes at most `at_once` of all ranks together.
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> own, Bytes at_once) const;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own) const override {
    return gather(own, kMostAtOnce);
  }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own, Bytes at_once) const;
  static constexpr Bytes kMostAtOnce{256 << 20};

  /// With communicators of its own.
  std::unique_ptr<World> part(std::span<const Rank> ranks, Others others) const override {
    return std::make_unique<MpiWorld>(*this, ranks, others);
  }

  /// All that still run find out about the same time, so they call the roll among themselves, for a quarter
  /// of the time limit, and name those who are silent.
  [[noreturn]] void give_up(const std::string& what, const std::vector<Rank>& whom) const override {
    give_up(what, whom, timeout());
  }

  /// Collective, the last call before the destructor, when all is done and said. Where MPI_Finalize may hang
  /// and the process manager can be told without it (process_manager.hpp) this does not return: the process
  /// ends, with the largest of the ranks' exit codes.
  void leave(int code);

  /// As abort() does, without MPI_Abort, for when MPI is not running, or hangs. The launcher ends the
  /// other ranks.
  [[noreturn]] static void end_without_mpi(int code);

  /// "Open MPI 4.1.4", "MPICH 4.0.2": the one that runs. MPI need not be initialised, here and below.
  static std::string library();
  /// The same of the one whose header this was compiled with.
  static std::string built_with();
  /// MPI_Get_library_version()'s text, of several lines for MPICH, which tell what it was built with.
  static std::string library_version();

  const Handle& handle() const { return *handle_; }

 private:
  class Call;
  /// Should MPI_Abort hang, this process ends all the same, and its launcher ends the others.
  void abort_others(int code) const override;
  void end_others(int code) const override { end_without_mpi(code); }
  static std::unique_ptr<Handle> begin_mpi();
  std::vector<std::vector<std::byte>> collect(std::span<const std::byte> own, Bytes at_once,
                                              bool everywhere) const;
  [[noreturn]] void give_up(const std::string& what, const std::vector<Rank>& whom, Seconds limit) const;
  std::vector<Rank> silent_ranks(Seconds limit) const;

  std::unique_ptr<Handle> handle_;
  bool finalizes_ = false;
};

/// Null where the ranks are not MPI's.
inline const MpiWorld* as_mpi_world(const World& world) { return dynamic_cast<const MpiWorld*>(&world); }

}  // namespace polyring
