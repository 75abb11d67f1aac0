#include "collectives/mpi/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string_view>
#include <thread>

#include "collectives/mpi/handle.hpp"
#include "topology/error.hpp"

namespace polyring {
namespace {

/// What the launchers tell each process: Open MPI, MPICH and Intel MPI (PMI), PMIx, Slurm with srun.
constexpr std::array kRankVariables{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};

const char* launched_rank_text() {
  for (const char* name : kRankVariables) {
    if (const char* value = std::getenv(name)) return value;
  }
  // An interactive shell inside an allocation has SLURM_PROCID too, but no step of several tasks.
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks != nullptr && std::string_view(tasks) != "1" ? std::getenv("SLURM_PROCID") : nullptr;
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

void check_mpi(int result, std::string_view call) {
  if (result == MPI_SUCCESS) return;
  throw Error(ExitCode::mpi, fmt::format("{} failed: {}", call, describe(result)));
}

MpiWorld::MpiWorld() : handle_(std::make_unique<Handle>()) {
  // Without it, Open MPI's communicators take no algorithm (see MpiAlgorithms). It changes nothing else:
  // where none is asked for, the library chooses as ever.
  setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    throw Error(ExitCode::mpi,
                "MPI could not be initialised; check that mpirun and the library are of one MPI");
  }
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &handle_->comm), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(handle_->comm, MPI_ERRORS_RETURN);
  int size = 0;
  check_mpi(MPI_Comm_rank(handle_->comm, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(handle_->comm, &size), "MPI_Comm_size");

  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  check_mpi(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
  std::vector<char> names(static_cast<std::size_t>(size) * name.size());
  constexpr int kLength = MPI_MAX_PROCESSOR_NAME;
  check_mpi(MPI_Allgather(name.data(), kLength, MPI_CHAR, names.data(), kLength, MPI_CHAR, handle_->comm),
            "MPI_Allgather");
  for (int rank = 0; rank < size; ++rank) {
    hosts_.emplace_back(names.data() + static_cast<std::size_t>(rank) * name.size());
  }
}

MpiWorld::~MpiWorld() {
  if (handle_->comm != MPI_COMM_NULL) MPI_Comm_free(&handle_->comm);
  MPI_Finalize();
}

int MpiWorld::nodes() const {
  return static_cast<int>(std::set<std::string>(hosts_.begin(), hosts_.end()).size());
}

int MpiWorld::ranks_on_this_host() const {
  return static_cast<int>(std::count(hosts_.begin(), hosts_.end(), host()));
}

int MpiWorld::ranks_per_node() const {
  const int each = size() / nodes();
  if (each * nodes() != size()) return 0;
  for (Rank rank = 0; rank < size(); ++rank) {
    if (host(rank) != host(rank / each * each)) return 0;
  }
  return each;
}

void MpiWorld::barrier() const { check_mpi(MPI_Barrier(handle_->comm), "MPI_Barrier"); }

void MpiWorld::patient_barrier() const {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(handle_->comm, &request), "MPI_Ibarrier");
  for (int done = 0;;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    std::this_thread::yield();
  }
}

double MpiWorld::max(double value) const { return max(std::span(&value, 1)).front(); }

std::vector<double> MpiWorld::max(std::span<const double> values) const {
  std::vector<double> result(values.size());
  check_mpi(MPI_Allreduce(values.data(), result.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX,
                          handle_->comm),
            "MPI_Allreduce");
  return result;
}

std::vector<std::vector<std::byte>> MpiWorld::allgather(std::span<const std::byte> own) const {
  const auto ranks = static_cast<std::size_t>(size());
  const int own_size = static_cast<int>(own.size());
  std::vector<int> sizes(ranks);
  check_mpi(MPI_Allgather(&own_size, 1, MPI_INT, sizes.data(), 1, MPI_INT, handle_->comm), "MPI_Allgather");
  std::vector<int> begins(ranks);
  std::exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), 0);
  std::vector<std::byte> all(static_cast<std::size_t>(begins.back() + sizes.back()));
  check_mpi(MPI_Allgatherv(own.data(), own_size, MPI_BYTE, all.data(), sizes.data(), begins.data(), MPI_BYTE,
                           handle_->comm),
            "MPI_Allgatherv");
  std::vector<std::vector<std::byte>> parts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    parts.emplace_back(all.begin() + begins[rank], all.begin() + begins[rank] + sizes[rank]);
  }
  return parts;
}

std::int64_t MpiWorld::sum(std::int64_t value) const {
  std::int64_t result = 0;
  check_mpi(MPI_Allreduce(&value, &result, 1, MPI_INT64_T, MPI_SUM, handle_->comm), "MPI_Allreduce");
  return result;
}

std::int64_t MpiWorld::broadcast(std::int64_t value) const {
  check_mpi(MPI_Bcast(&value, 1, MPI_INT64_T, 0, handle_->comm), "MPI_Bcast");
  return value;
}

void MpiWorld::abort(int code) const {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::abort();
}

std::string MpiWorld::library() {
#if defined(OPEN_MPI)
  return fmt::format("Open MPI {}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
  return fmt::format("MPICH {}", MPICH_VERSION);
#else
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view version(text.data(), static_cast<std::size_t>(length));
  return std::string(version.substr(0, version.find_first_of(",\n")));
#endif
}

}  // namespace polyring
