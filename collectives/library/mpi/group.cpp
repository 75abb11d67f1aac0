#include "collectives/library/mpi/group.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string_view>

#include "collectives/library/mpi/agreement.hpp"
#include "collectives/library/mpi/failure.hpp"
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

/// What fails here must not keep this rank from what the others do next.
void keep(std::string& why, const char* sentence) noexcept {
  try {
    why = sentence;
  } catch (const std::exception&) {
    why.clear();
  }
}

void note_refusal(int ranks, const std::string& why) noexcept {
  try {
    note(fmt::format("a communicator of {} ranks: {}", ranks,
                     why.empty() ? "other ranks could not join" : why));
  } catch (const std::exception&) {
    return;
  }
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
  }
}

void KnownComm::keep_failure() {
  try {
    throw;
  } catch (const Error& error) {
    failure_ = error;
  } catch (const std::exception& error) {
    failure_.emplace(ExitCode::internal, error.what());
  }
  throw Error(*failure_);
}

void KnownComm::agree(MPI_Comm comm) {
  try {
    if (!refusal_) find_settings(comm);
  } catch (const std::exception&) {
    keep_failure();
  }
  settled_ = true;
}

/// The largest of what is negated is the smallest.
void KnownComm::find_settings(MPI_Comm comm) {
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
  if (failure_) throw Error(*failure_);
  if (!settled_) throw Error(ExitCode::internal, "the ranks of a communicator have not agreed");
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
  if (!communicator_) return processes_->check();  // all ranks are needed to join
  processes_->check([this] { return communicator_->transport().awaited(); });
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
  CommunicatorOptions options = over_mpi(*world_, rules, WhenStuck::go_on);
  options.planner = planning_.planner.get();
  return options;
}

/// A setting that cannot be followed is said aloud, by one rank.
void KnownComm::plan() {
  try {
    planning_ = library::plan_by_topology(*world_, "");
  } catch (const AgreedError& error) {
    if (rank_ == 0) say(error.what(), "(calls go on to MPI)");
    throw;
  }
}

/// Where all ranks refuse together, no call of MPI is under way on any of them.
KnownComm::Joining KnownComm::try_to_join(MPI_Comm comm, std::string& why) {
  try {
    world_ = std::make_unique<MpiWorld>(MpiWorld::Handle::of(comm));
    world_->set_timeout(kJoining);
    processes_.emplace(*world_);
    plan();
    communicator_.emplace(*world_, options());
    return Joining::done;
  } catch (const AgreedError& error) {
    keep(why, error.what());
    return Joining::refused;
  } catch (const std::exception& error) {
    keep(why, error.what());
    return Joining::broken_off;
  }
}

/// Where one has broken off, MPI may still have messages of the others' for it: all keep their communicators.
bool KnownComm::join(MPI_Comm comm) {
  if (tried_) return !refusal_;
  tried_ = true;
  settled_ = false;
  refusal_ = Why::not_joined;
  const ErrorsReturned returned(comm);
  std::string why;
  const Joining own = try_to_join(comm, why);
  Joining worst = own;
  try {
    worst = static_cast<Joining>(
        largest(comm, {static_cast<std::int64_t>(own)}, agreed_.timeout + kJoining).front());
  } catch (const std::exception&) {
    keep_failure();
  }
  settled_ = true;
  if (worst == Joining::done) {
    refusal_.reset();
    return true;
  }
  note_refusal(size_, why);
  if (worst == Joining::refused) release();
  return false;
}

void KnownComm::run(const CollectiveOf& what, const std::byte* input, std::byte* output) {
  communicator_->run(what, input, output);
}

void KnownComm::begin_end() {
  if (refusal_) throw Error(ExitCode::mpi, "the ranks were not joined");
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
