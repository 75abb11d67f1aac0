#include "collectives/library/ddl/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"
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

/// A rank gives up when nothing has come nearer to its end for so long: ddl.h says it, too.
constexpr Seconds kTimeout{60};

/// Where the ranks have their memory.
struct Place {
  int gpu = kHostMemory;
  std::string why_host;
};

/// What a rank has to say of its GPU.
struct Own {
  std::optional<GpuDevice> gpu;
  std::string why_not;  // half a sentence
  bool fatal = false;
};

/// The one that has the rank's number on its host, or the only one that the launcher lets it see.
Own own_gpu(int local) {
  const char* const named = std::getenv("POLYRING_CUDA_PLUGIN");
  GpuPlugin* const plugin = gpu_plugin().plugin;
  if (plugin == nullptr) return {{}, gpu_plugin().why_not, named != nullptr && *named != '\0'};
  try {
    std::vector<GpuDevice> gpus = plugin->gpus();
    const int number = gpus.size() == 1 ? 0 : local;
    if (number < std::ssize(gpus)) return {std::move(gpus[index(number)]), {}};
    return {
        {},
        fmt::format("it is number {} on its host, which has {}", local, counted(std::ssize(gpus), "GPU"))};
  } catch (const Error& error) {
    return {{}, error.what()};  // there is no driver, or no GPU
  }
}

/// What the ranks tell each other: a letter that says what the rest is.
std::string told(const Own& own) {
  if (own.gpu) return "g" + own.gpu->id;
  return (own.fatal ? "f" : "w") + own.why_not;
}

/// All ranks get one of their own, or none. Throws Error(ExitCode::not_available), on all ranks, where one
/// has named a plug-in that cannot be loaded.
Place find_place(const MpiWorld& world) {
  int local = 0;
  for (Rank rank = 0; rank < world.rank(); ++rank) local += world.shares_host_with(rank) ? 1 : 0;
  const Own own = own_gpu(local);
  const std::string says = told(own);
  std::vector<std::string> said;
  for (const std::vector<std::byte>& bytes : world.allgather(std::as_bytes(std::span(says))))
    said.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto first_that_says = [&](char letter) {
    return std::find_if(said.begin(), said.end(),
                        [letter](const std::string& all) { return all[0] == letter; });
  };
  if (const auto fatal = first_that_says('f'); fatal != said.end()) {
    throw Error(ExitCode::not_available,
                fmt::format("rank {} cannot use GPUs: {}; correct POLYRING_CUDA_PLUGIN, or unset it",
                            fatal - said.begin(), fatal->substr(1)));
  }
  if (const auto without = first_that_says('w'); without != said.end())
    return {kHostMemory, fmt::format("rank {} has no GPU: {}", without - said.begin(), without->substr(1))};
  std::map<std::string, Rank> owners;
  for (Rank rank = 0; rank < std::ssize(said); ++rank) {
    const auto [owner, is_new] = owners.emplace(said[index(rank)], rank);
    if (!is_new)
      return {kHostMemory, fmt::format("ranks {} and {} have one GPU between them", owner->second, rank)};
  }
  return {own.gpu->index, {}};
}

/// That of MPI_COMM_WORLD's ranks: others' memory is ddl_malloc()'s, too.
std::optional<Place>& worlds_place() {
  static std::optional<Place> own;
  return own;
}

Place place_of(const MpiWorld& world, MPI_Comm comm) {
  if (worlds_place()) return *worlds_place();
  Place place = find_place(world);
  int compared = MPI_UNEQUAL;
  check_mpi(MPI_Comm_compare(comm, MPI_COMM_WORLD, &compared), "MPI_Comm_compare");
  if (compared == MPI_IDENT || compared == MPI_CONGRUENT) worlds_place() = place;
  return place;
}

std::unique_ptr<Ranks> make_ranks(MPI_Comm comm, const std::string& text) {
  const std::vector<int> dims = parse_ddl_options(text).dims;
  auto world = std::make_unique<MpiWorld>(MpiWorld::Handle::of(comm));
  world->set_timeout(kTimeout);
  GroupOptions options(nullptr);
  Place place = place_of(*world, comm);
  options.gpu = place.gpu;
  options.communicator = over_mpi(*world, world->wait_rules(), WhenStuck::go_on);
  options.communicator.constraints.dims = dims;
  auto ranks = std::make_unique<Ranks>(std::move(world), std::move(options), dims, std::move(place.why_host));
  ranks->communicator().plan({.count = 1});  // throws where the grid is not of so many ranks
  return ranks;
}

/// Never destroyed: MPI may be finalized by another library's destructor.
std::list<std::unique_ptr<Ranks>>& live() {
  static auto& all = *new std::list<std::unique_ptr<Ranks>>;
  return all;
}

/// One that has failed stays for ever: MPI may still use its memory.
void end(std::unique_ptr<Ranks> ranks) {
  bool failed = ranks->communicator().failure().has_value();
  try {
    ranks->end();
  } catch (const std::exception&) {
    failed = true;
  }
  if (failed) static_cast<void>(ranks.release());
}

int communicator_freed(MPI_Comm, int, void* attribute, void*) {
  const std::lock_guard lock(calls());
  for (auto ranks = live().begin(); ranks != live().end(); ++ranks) {
    if (ranks->get() != attribute) continue;
    std::unique_ptr<Ranks> ended = std::move(*ranks);
    live().erase(ranks);
    end(std::move(ended));
    break;
  }
  return MPI_SUCCESS;
}

int mpi_ends(MPI_Comm, int, void*, void*) {
  const std::lock_guard lock(calls());
  for (std::unique_ptr<Ranks>& ranks : live()) end(std::move(ranks));
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

Ranks::Ranks(std::unique_ptr<Bootstrap> bootstrap, GroupOptions options, std::vector<int> dims,
             std::string why_host)
    : Group(std::move(bootstrap), std::move(options)),
      dims_(std::move(dims)),
      why_host_(std::move(why_host)) {}

void Ranks::check_options(const std::string& text) const {
  const std::vector<int> dims = parse_ddl_options(text).dims;
  if (dims.empty() || dims == dims_) return;
  usage_error(
      "the options ask for the grid {}, and the ranks have {} since the first call; give the same options "
      "to every call",
      dims_text(dims), dims_.empty() ? "none of their own" : "the grid " + dims_text(dims_));
}

void* Ranks::allocate(Bytes bytes) {
  void* const memory = Group::allocate(bytes);
  allocated_.insert(memory);
  return memory;
}

void Ranks::free(void* memory) {
  if (memory != nullptr && !allocated_.contains(memory))
    usage_error("this memory is not ddl_malloc()'s, or was freed; give what ddl_malloc() has set");
  Group::free(memory);
  allocated_.erase(memory);
}

/// Group itself refuses host memory where the ranks' is their GPUs'.
void Ranks::check_memory(const void* data) const {
  GpuPlugin* const plugin = gpu_plugin().plugin;
  if (why_host_.empty() || plugin == nullptr) return;
  int gpu = kHostMemory;
  try {
    gpu = plugin->locate(data).gpu;
  } catch (const Error&) {
    return;  // there is no driver, and so no GPU's memory
  }
  if (gpu != kHostMemory)
    usage_error("this memory is on GPU {}, and that of the ranks in host memory, since {}", gpu, why_host_);
}

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

Ranks* known_ranks(MPI_Comm comm) { return static_cast<Ranks*>(comm_attribute(comm, key())); }

Ranks& ranks_of(MPI_Comm comm, const std::string& options) {
  if (Ranks* const known = known_ranks(comm)) {
    known->check_options(options);
    return *known;
  }
  live().push_back(make_ranks(comm, options));
  Ranks& ranks = *live().back();
  check_mpi(MPI_Comm_set_attr(comm, key(), &ranks), "MPI_Comm_set_attr");
  return ranks;
}

}  // namespace polyring::ddl
