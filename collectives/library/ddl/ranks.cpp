#include "collectives/library/ddl/ranks.hpp"

#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "collectives/cuda/gpu.hpp"
#include "collectives/runtime/mpi/comm_key.hpp"
#include "collectives/runtime/mpi/handle.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "collectives/runtime/transports/mpi.hpp"
#include "collectives/schedule/plan.hpp"

namespace polyring::ddl {
namespace {

using library::Group;
using library::GroupOptions;

/// A rank gives up when nothing has come nearer to its end for so long.
constexpr Seconds kTimeout{60};

/// All ranks get one, or none.
int gpu_of(const MpiWorld& world) {
  int local = 0;
  for (Rank rank = 0; rank < world.rank(); ++rank) local += world.shares_host_with(rank) ? 1 : 0;
  bool has_one = false;
  if (GpuPlugin* const plugin = gpu_plugin().plugin) {
    try {
      has_one = local < std::ssize(plugin->gpus());
    } catch (const Error&) {
      // There is no driver, or no GPU.
    }
  }
  return world.sum(has_one ? 1 : 0) == world.size() ? local : kHostMemory;
}

std::unique_ptr<Group> make_group(MPI_Comm comm, const std::string& text) {
  std::vector<int> dims = parse_ddl_options(text).dims;
  auto world = std::make_unique<MpiWorld>(MpiWorld::Handle::of(comm));
  world->set_timeout(kTimeout);
  GroupOptions options(nullptr);
  options.gpu = gpu_of(*world);
  options.communicator = over_mpi(*world, world->wait_rules(), WhenStuck::go_on);
  options.communicator.constraints.dims = std::move(dims);
  auto group = std::make_unique<Group>(std::move(world), std::move(options));
  group->communicator().plan({.count = 1});  // throws where the grid is not of so many ranks
  return group;
}

/// Never destroyed: MPI may be finalized by another library's destructor.
std::list<std::unique_ptr<Group>>& live() {
  static auto& all = *new std::list<std::unique_ptr<Group>>;
  return all;
}

/// One that has failed stays for ever: MPI may still use its memory.
void end(std::unique_ptr<Group> group) {
  bool failed = group->communicator().failure().has_value();
  try {
    group->end();
  } catch (const std::exception&) {
    failed = true;
  }
  if (failed) static_cast<void>(group.release());
}

int communicator_freed(MPI_Comm, int, void* attribute, void*) {
  const std::lock_guard lock(calls());
  for (auto group = live().begin(); group != live().end(); ++group) {
    if (group->get() != attribute) continue;
    std::unique_ptr<Group> ended = std::move(*group);
    live().erase(group);
    end(std::move(ended));
    break;
  }
  return MPI_SUCCESS;
}

int mpi_ends(MPI_Comm, int, void*, void*) {
  const std::lock_guard lock(calls());
  for (std::unique_ptr<Group>& group : live()) end(std::move(group));
  live().clear();
  return MPI_SUCCESS;
}

int key() {
  static const int own = make_comm_key(communicator_freed, mpi_ends);
  return own;
}

bool asked(int (*question)(int*)) {
  int yes = 0;
  return question(&yes) == MPI_SUCCESS && yes != 0;
}

}  // namespace

std::recursive_mutex& calls() {
  static auto& own = *new std::recursive_mutex;
  return own;
}

void begin_mpi() {
  if (asked(MPI_Finalized)) usage_error("MPI is finalized, and cannot be initialized again");
  if (asked(MPI_Initialized)) return;
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
}

void need_mpi() {
  if (!asked(MPI_Initialized) || asked(MPI_Finalized))
    usage_error("MPI is not running; call ddl_init() or MPI_Init() first");
}

Group* known_group(MPI_Comm comm) { return static_cast<Group*>(comm_attribute(comm, key())); }

Group& group_of(MPI_Comm comm, const std::string& options) {
  if (Group* const known = known_group(comm)) return *known;
  live().push_back(make_group(comm, options));
  Group& group = *live().back();
  check_mpi(MPI_Comm_set_attr(comm, key(), &group), "MPI_Comm_set_attr");
  return group;
}

}  // namespace polyring::ddl
