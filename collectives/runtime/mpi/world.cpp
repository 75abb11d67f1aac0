#include "collectives/runtime/mpi/world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/runtime/backoff.hpp"
#include "collectives/runtime/mpi/gather_rounds.hpp"
#include "collectives/runtime/mpi/handle.hpp"
#include "collectives/runtime/mpi/library_name.hpp"
#include "collectives/runtime/mpi/process_manager.hpp"

namespace polyring {
namespace {

/// What the launchers tell each process: Open MPI, MPICH and Intel MPI (PMI), PMIx, Slurm with srun.
constexpr std::array kRankVariables{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};

/// A shell in an allocation, and a batch script, have SLURM_NTASKS and SLURM_PROCID too, but no step of
/// several tasks.
const char* slurm_tasks() {
  const char* tasks = std::getenv("SLURM_PROCID") == nullptr ? nullptr : std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks != nullptr && std::string_view(tasks) != "1" ? tasks : nullptr;
}

const char* launched_rank_text() {
  for (const char* name : kRankVariables) {
    if (const char* value = std::getenv(name)) return value;
  }
  return slurm_tasks() != nullptr ? std::getenv("SLURM_PROCID") : nullptr;
}

std::string describe(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return fmt::format("error {}", code);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace

bool launched_by_mpi() { return launched_rank_text() != nullptr; }

Rank launched_rank() {
  const char* text = launched_rank_text();
  return text == nullptr ? 0 : std::atoi(text);
}

int launched_ranks() {
  // mpirun under Slurm starts its daemons by srun: so its own number counts.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* size = std::getenv(name)) return std::max(1, std::atoi(size));
  }
  const char* tasks = slurm_tasks();
  return tasks == nullptr ? 1 : std::max(1, std::atoi(tasks));
}

int launched_local_rank() {
  // In the order in which one of these launchers is started by another.
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    if (const char* rank = std::getenv(name)) return std::atoi(rank);
  }
  return 0;
}

std::string launched_by() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) return "Open MPI's mpirun";
  if (slurm_tasks() != nullptr) return "srun";
  return std::getenv("PMI_SIZE") != nullptr ? "an mpiexec of MPICH's kind" : "a launcher";
}

void check_mpi(int result, std::string_view call) {
  if (result == MPI_SUCCESS) return;
  throw Error(ExitCode::mpi, fmt::format("{} failed: {}", call, describe(result)));
}

MpiWorld::Handle::~Handle() {
  for (MPI_Comm* own : {&comm, &roll_call}) {
    if (*own != MPI_COMM_NULL) MPI_Comm_free(own);
  }
}

std::unique_ptr<MpiWorld::Handle> MpiWorld::Handle::of(MPI_Comm group) {
  auto handle = std::make_unique<Handle>();
  for (MPI_Comm* own : {&handle->comm, &handle->roll_call}) {
    // A duplicate would have copies of the program's attributes.
    check_mpi(MPI_Comm_split(group, 0, 0, own), "MPI_Comm_split");
    MPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
  }
  return handle;
}

std::unique_ptr<MpiWorld::Handle> MpiWorld::begin_mpi() {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    throw Error(ExitCode::mpi,
                "MPI could not be initialised; check that mpirun and the library are of one MPI");
  }
  return Handle::of(MPI_COMM_WORLD);
}

MpiWorld::MpiWorld() : MpiWorld(begin_mpi()) { finalizes_ = true; }

Rank MpiWorld::Handle::rank() const {
  Rank rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}

int MpiWorld::Handle::size() const {
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

MpiWorld::MpiWorld(std::unique_ptr<Handle> handle)
    : World(handle->rank(), handle->size()), handle_(std::move(handle)) {
  find_own_hosts();
}

MpiWorld::MpiWorld(const MpiWorld& whole, std::span<const Rank> ranks, Others others)
    : World(whole, ranks, others), handle_(std::make_unique<Handle>()) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group part = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(whole.handle_->comm, &all), "MPI_Comm_group");
  check_mpi(MPI_Group_incl(all, size(), ranks.data(), &part), "MPI_Group_incl");
  for (MPI_Comm* comm : {&handle_->comm, &handle_->roll_call}) {
    check_mpi(MPI_Comm_create_group(whole.handle_->comm, part, 0, comm), "MPI_Comm_create_group");
    MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
  }
  MPI_Group_free(&part);
  MPI_Group_free(&all);
  find_own_hosts();
}

void MpiWorld::leave(int code) {
  const std::string version = library_version();
  if (size() == 1 || !may_hang_in_finalize(version) || !speaks_pmi1(version)) return;
  // Nobody may end while another one still has something to do.
  idle_barrier();
  const int of_all = static_cast<int>(max(code));
  // The last of one's messages may not have left.
  Backoff backoff(Seconds{0.1}, true);
  int found = 0;
  do {
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, handle_->comm, &found, MPI_STATUS_IGNORE);
  } while (backoff.again());
  std::fflush(nullptr);
  leave_process_manager();
  _exit(of_all);
}

MpiWorld::~MpiWorld() {
  handle_.reset();
  if (finalizes_) MPI_Finalize();
}

namespace {

/// MPI goes on with a call that was given up, and with the memory that it was given.
void keep_for_good(std::vector<std::shared_ptr<void>> memory) {
  struct Kept {
    std::mutex mutex;
    std::vector<std::vector<std::shared_ptr<void>>> all;
  };
  static auto* const kept = new Kept;
  const std::lock_guard lock(kept->mutex);
  kept->all.push_back(std::move(memory));
}

}  // namespace

/// Waits for one of the calls below. A world may go on after a failure: MPI gets no memory but what the call
/// holds, for as long as MPI may use it.
class MpiWorld::Call {
 public:
  explicit Call(const MpiWorld& world) : Call(world, world.timeout()) {}
  Call(const MpiWorld& world, Seconds limit) : world_(world), limit_(limit) {}
  MPI_Comm comm() const { return world_.handle_->comm; }
  MPI_Request* request() { return &request_; }

  template <typename Value>
  Value& hold(Value value) {
    auto held = std::make_shared<Value>(std::move(value));
    held_.push_back(held);
    return *held;
  }

  void finish(int started, const char* name) { finish(started, name, world_.shares_cores()); }

  void finish(int started, const char* name, bool yields) {
    try {
      complete(started, name, yields);
    } catch (...) {
      if (!held_.empty()) keep_for_good(std::move(held_));
      world_.tell_failure();
      throw;
    }
  }

 private:
  void complete(int started, const char* name, bool yields) {
    check_mpi(started, name);
    Backoff backoff(limit_, yields);
    int done = 0;
    do {
      check_mpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), name);
      // The request is given up along with the job: there is no cancelling a collective call.
      if (done == 0 && !backoff.again()) world_.give_up(name, {}, limit_);
    } while (done == 0);
  }

  const MpiWorld& world_;
  Seconds limit_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::vector<std::shared_ptr<void>> held_;
};

MPI_Comm MpiWorld::Handle::duplicate(const MpiWorld& world) {
  Call call(world);
  MPI_Comm& copy = call.hold(MPI_Comm{MPI_COMM_NULL});
  call.finish(MPI_Comm_idup(call.comm(), &copy, call.request()), "a new communicator");
  return copy;
}

void MpiWorld::barrier() const {
  Call call(*this);
  call.finish(MPI_Ibarrier(call.comm(), call.request()), "a barrier");
}

void MpiWorld::idle_barrier() const {
  Call call(*this);
  call.finish(MPI_Ibarrier(call.comm(), call.request()), "a barrier", true);
}

void MpiWorld::barrier_without_limit() const { check_mpi(MPI_Barrier(handle_->comm), "MPI_Barrier"); }

std::vector<double> MpiWorld::max(std::span<const double> values) const {
  Call call(*this);
  const auto& own = call.hold(std::vector(values.begin(), values.end()));
  auto& result = call.hold(std::vector<double>(values.size()));
  call.finish(MPI_Iallreduce(own.data(), result.data(), static_cast<int>(own.size()), MPI_DOUBLE, MPI_MAX,
                             call.comm(), call.request()),
              "a maximum over the ranks");
  return result;
}

std::vector<std::vector<std::byte>> MpiWorld::allgather(std::span<const std::byte> own, Bytes at_once) const {
  return collect(own, at_once, true);
}

std::vector<std::vector<std::byte>> MpiWorld::gather(std::span<const std::byte> own, Bytes at_once) const {
  return collect(own, at_once, false);
}

std::vector<std::vector<std::byte>> MpiWorld::collect(std::span<const std::byte> own, Bytes at_once,
                                                      bool everywhere) const {
  const auto ranks = static_cast<std::size_t>(size());
  Call of_sizes(*this);
  const auto& own_size = of_sizes.hold(static_cast<std::int64_t>(own.size()));
  auto& sizes = of_sizes.hold(std::vector<std::int64_t>(ranks));
  of_sizes.finish(MPI_Iallgather(&own_size, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, of_sizes.comm(),
                                 of_sizes.request()),
                  "an exchange of sizes");
  const bool receives = everywhere || rank() == 0;
  std::vector<std::vector<std::byte>> parts(receives ? ranks : 0);
  for (const GatherRound& planned : gather_rounds(sizes, at_once)) {
    Call call(*this);
    const GatherRound& round = call.hold(planned);
    const int count = round.counts[static_cast<std::size_t>(rank())];
    const auto data = own.subspan(std::min(round.offset, own.size()), index(count));
    const auto& sent = call.hold(std::vector(data.begin(), data.end()));
    auto& all = call.hold(std::vector<std::byte>(receives ? round.total() : 0));
    const int started = everywhere
                            ? MPI_Iallgatherv(sent.data(), count, MPI_BYTE, all.data(), round.counts.data(),
                                              round.begins.data(), MPI_BYTE, call.comm(), call.request())
                            : MPI_Igatherv(sent.data(), count, MPI_BYTE, all.data(), round.counts.data(),
                                           round.begins.data(), MPI_BYTE, 0, call.comm(), call.request());
    call.finish(started, "an exchange of all ranks' bytes");
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const auto begin = all.begin() + round.begins[rank];
      parts[rank].insert(parts[rank].end(), begin, begin + round.counts[rank]);
    }
  }
  return parts;
}

std::int64_t MpiWorld::sum(std::int64_t value) const {
  Call call(*this);
  const std::int64_t& own = call.hold(value);
  std::int64_t& result = call.hold(std::int64_t{0});
  call.finish(MPI_Iallreduce(&own, &result, 1, MPI_INT64_T, MPI_SUM, call.comm(), call.request()),
              "a sum over the ranks");
  return result;
}

std::int64_t MpiWorld::broadcast(std::int64_t value) const {
  Call call(*this);
  std::int64_t& of_all = call.hold(value);
  call.finish(MPI_Ibcast(&of_all, 1, MPI_INT64_T, 0, call.comm(), call.request()), "a broadcast");
  return of_all;
}

std::int64_t MpiWorld::broadcast(std::int64_t value, Seconds limit) const {
  Call call(*this, limit);
  std::int64_t& of_all = call.hold(value);
  call.finish(MPI_Ibcast(&of_all, 1, MPI_INT64_T, 0, call.comm(), call.request()), "a broadcast", true);
  return of_all;
}

std::vector<Rank> MpiWorld::silent_ranks(Seconds limit) const {
  const auto ranks = static_cast<std::size_t>(size());
  std::vector<MPI_Request> requests(2 * ranks, MPI_REQUEST_NULL);  // receives, then sends
  // The messages are empty, and may still be on their way when this process ends.
  for (Rank rank = 0; rank < size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (rank == this->rank()) continue;
    MPI_Irecv(nullptr, 0, MPI_BYTE, rank, 0, handle_->roll_call, &requests[at]);
    MPI_Isend(nullptr, 0, MPI_BYTE, rank, 0, handle_->roll_call, &requests[ranks + at]);
  }
  Backoff backoff(0.25 * limit + Seconds{0.5}, true);
  int all = 0;
  do {
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE);
  } while (all == 0 && backoff.again());

  std::vector<Rank> silent;
  for (Rank rank = 0; rank < size() && all == 0; ++rank) {
    int answered = 0;
    MPI_Request& answer = requests[static_cast<std::size_t>(rank)];
    if (answer != MPI_REQUEST_NULL) MPI_Test(&answer, &answered, MPI_STATUS_IGNORE);
    if (rank == this->rank() || answer == MPI_REQUEST_NULL || answered != 0) continue;
    silent.push_back(rank);
    // Or it would be matched by a message of a later communicator that gets this one's number.
    MPI_Cancel(&answer);
    MPI_Request_free(&answer);
  }
  return silent;
}

void MpiWorld::give_up(const std::string& what, const std::vector<Rank>& whom, Seconds limit) const {
  std::string waited =
      fmt::format("waited {} for {}", to_text(limit), whom.empty() ? what : ranks_text(whom, hosts()));
  const std::vector<Rank> silent = silent_ranks(limit);
  if (!silent.empty()) {
    waited += fmt::format("; no answer from {}: see whether it still runs and its network is up",
                          ranks_text(silent, hosts()));
  }
  throw Error(ExitCode::timeout, waited + "; or raise the time limit");
}

void MpiWorld::abort_others(int code) const {
  await_output_read();
  std::thread([code] {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    end_without_mpi(code);
  }).detach();
  MPI_Abort(MPI_COMM_WORLD, code);
  end_without_mpi(code);
}

void MpiWorld::end_without_mpi(int code) {
  // Where a process just ends, MPICH's mpiexec may take the exit code of another one, which it kills then.
  await_output_read();
  if (speaks_pmi1(library_version())) abort_process_manager(code);
  _exit(code);
}

std::string MpiWorld::library() { return library_name(library_version()); }

std::string MpiWorld::built_with() {
#if defined(OPEN_MPI)
  return fmt::format("Open MPI {}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
  return fmt::format("MPICH {}", MPICH_VERSION);
#else
  return fmt::format("an MPI {}.{}", MPI_VERSION, MPI_SUBVERSION);
#endif
}

std::string MpiWorld::library_version() {
  // The MPI that runs may be another one than this was built with, whose text is longer: MPICH's has up to 8
  // KiB.
  constexpr std::size_t kLongest = 16384;
  static_assert(kLongest >= MPI_MAX_LIBRARY_VERSION_STRING);
  std::array<char, kLongest> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace polyring
