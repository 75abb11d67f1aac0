#include "collectives/library/ddl/ranks.hpp"

#include <list>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "collectives/cuda/gpu.hpp"
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
  GroupOptions options(nullptr);
  options.communicator.constraints.dims = parse_ddl_options(text).dims;
  auto world = std::make_unique<MpiWorld>(MpiWorld::Handle::of(comm));
  world->set_timeout(kTimeout);
  options.gpu = gpu_of(*world);
  const PlanConstraints constraints = options.communicator.constraints;
  options.communicator = over_mpi(*world, world->wait_rules(), WhenStuck::go_on);
  options.communicator.constraints = constraints;
  auto group = std::make_unique<Group>(std::move(world), std::move(options));
  group->communicator().plan({.count = 1});  // throws where the grid is not of so many ranks
  return group;
}

/// Never destroyed: MPI may be finalized by another library's destructor. Only one thread at a time is in
/// here (ddl.cpp).
std::list<std::unique_ptr<Group>>& live() {
  static auto& all = *new std::list<std::unique_ptr<Group>>;
  return all;
}

/// One that has failed stays for ever: MPI may still use its memory.
void end(std::unique_ptr<Group> group) {
  try {
    group->end();
  } catch (const std::exception&) {
    static_cast<void>(group.release());
  }
}

int communicator_freed(MPI_Comm, int, void* attribute, void*) {
  for (auto group = live().begin(); group != live().end(); ++group) {
    if (group->get() != attribute) continue;
    std::unique_ptr<Group> ended = std::move(*group);
    live().erase(group);
    end(std::move(ended));
    break;
  }
  return MPI_SUCCESS;
}

/// MPI_Finalize frees the attributes of MPI_COMM_SELF first, while the ranks still reach each other.
int mpi_ends(MPI_Comm, int, void*, void*) {
  for (std::unique_ptr<Group>& group : live()) end(std::move(group));
  live().clear();
  return MPI_SUCCESS;
}

/// The key of a communicator's group. At the first call the library is told of MPI's end, too.
int key() {
  static const int own = [] {
    int made = MPI_KEYVAL_INVALID;
    int at_end = MPI_KEYVAL_INVALID;
    check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, communicator_freed, &made, nullptr),
              "MPI_Comm_create_keyval");
    check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, mpi_ends, &at_end, nullptr),
              "MPI_Comm_create_keyval");
    check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, at_end, nullptr), "MPI_Comm_set_attr");
    return made;
  }();
  return own;
}

bool asked(int (*question)(int*)) {
  int yes = 0;
  return question(&yes) == MPI_SUCCESS && yes != 0;
}

}  // namespace

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

Group* known_group(MPI_Comm comm) {
  void* attribute = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(comm, key(), static_cast<void*>(&attribute), &found), "MPI_Comm_get_attr");
  return found != 0 ? static_cast<Group*>(attribute) : nullptr;
}

Group& group_of(MPI_Comm comm, const std::string& options) {
  if (Group* const known = known_group(comm)) return *known;
  live().push_back(make_group(comm, options));
  Group& group = *live().back();
  check_mpi(MPI_Comm_set_attr(comm, key(), &group), "MPI_Comm_set_attr");
  return group;
}

}  // namespace polyring::ddl
