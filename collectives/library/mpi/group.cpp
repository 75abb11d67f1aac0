#include "collectives/library/mpi/group.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string_view>

#include "base/error.hpp"
#include "collectives/library/mpi/agreement.hpp"
#include "collectives/runtime/mpi/handle.hpp"
#include "collectives/runtime/transports/mpi.hpp"

namespace polyring::interposer {
namespace {

/// For the ranks to join, which they begin together.
constexpr Seconds kJoining{60};
/// From one call into MPI to the next while a rank waits for others.
constexpr std::chrono::microseconds kBetweenProgress{5};
constexpr double kTimeoutUnit = 1e-3;

std::int64_t version_number() {
  return static_cast<std::int64_t>(std::hash<std::string_view>{}(POLYRING_VERSION) >> 1);
}

}  // namespace

KnownComm::KnownComm(MPI_Comm comm) {
  int inter = 0;
  check_mpi(PMPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter");
  check_mpi(PMPI_Comm_size(comm, &size_), "MPI_Comm_size");
  check_mpi(PMPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
  if (inter != 0) {
    refusal_ = Why::intercomm;
  } else if (size_ < 2) {
    refusal_ = Why::one_rank;
  } else {
    agree(comm);
  }
}

/// The largest of what is negated is the smallest.
void KnownComm::agree(MPI_Comm comm) {
  agreed_ = own_settings();
  const std::int64_t version = version_number();
  std::vector<std::int64_t> own{agreed_.on ? 0 : 1, version, -version,
                                -std::llround(agreed_.timeout.value / kTimeoutUnit)};
  for (const Bytes threshold : agreed_.thresholds) own.push_back(static_cast<std::int64_t>(threshold.value));
  const std::vector<std::int64_t> all = largest(comm, own, agreed_.timeout);
  if (all[0] != 0 || all[1] != -all[2]) refusal_ = Why::off;
  agreed_.timeout = Seconds{static_cast<double>(-all[3]) * kTimeoutUnit};
  for (std::size_t i = 0; i < kSizeClasses; ++i)
    agreed_.thresholds[i] = Bytes{static_cast<std::uint64_t>(all[4 + i])};
}

std::optional<Why> KnownComm::refuses(SizeClass size_class, Bytes longer) const {
  if (refusal_) return refusal_;
  if (longer < agreed_.thresholds[static_cast<std::size_t>(size_class)]) return Why::small;
  return std::nullopt;
}

/// MPI promises that its other messages arrive while a rank waits in a collective call.
void KnownComm::go_on_meanwhile() {
  const auto now = std::chrono::steady_clock::now();
  if (now - progressed_ < kBetweenProgress) return;
  progressed_ = now;
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_->handle().roll_call, &found, MPI_STATUS_IGNORE);
  processes_->check();
}

CommunicatorOptions KnownComm::options() {
  WaitRules rules;
  rules.timeout = agreed_.timeout;
  rules.yields = world_->shares_cores();
  rules.give_up = [this](const std::string& what, const std::vector<Rank>& whom) {
    std::string ranks;
    for (const Rank other : whom)
      ranks += fmt::format("{}rank {} ({})", ranks.empty() ? "" : ", ", other, world_->host(other));
    throw Error(ExitCode::timeout,
                fmt::format("waited {} for {}; see whether it still runs, or raise POLYRING_MPI_TIMEOUT",
                            to_text(agreed_.timeout), ranks.empty() ? what : ranks));
  };
  rules.idle = [this] { go_on_meanwhile(); };
  return over_mpi(*world_, rules, WhenStuck::go_on);
}

bool KnownComm::join(MPI_Comm comm) {
  if (tried_) return !refusal_;
  tried_ = true;
  refusal_ = Why::not_joined;
  const ErrorsReturned returned(comm);
  std::string why;
  try {
    world_ = std::make_unique<MpiWorld>(MpiWorld::Handle::of(comm));
    world_->set_timeout(kJoining);
    processes_.emplace(*world_);
    communicator_.emplace(*world_, options());
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (largest(comm, {why.empty() ? 0 : 1}, agreed_.timeout + kJoining)[0] == 0) {
    refusal_.reset();
    return true;
  }
  note(
      fmt::format("a communicator of {} ranks: {}", size_, why.empty() ? "other ranks could not join" : why));
  release();
  return false;
}

void KnownComm::run(const CollectiveOf& what, const std::byte* input, std::byte* output) {
  communicator_->run(what, input, output);
}

void KnownComm::begin_end() {
  if (!communicator_) return;
  if (communicator_->failure()) throw *communicator_->failure();
  check_mpi(PMPI_Ibarrier(world_->handle().comm, &ending_), "MPI_Ibarrier");
}

bool KnownComm::has_ended() {
  int done = 1;
  if (ending_ != MPI_REQUEST_NULL) check_mpi(PMPI_Test(&ending_, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done == 0 && processes_) processes_->check();
  return done != 0;
}

void KnownComm::release() {
  communicator_.reset();
  processes_.reset();
  world_.reset();
}

}  // namespace polyring::interposer
