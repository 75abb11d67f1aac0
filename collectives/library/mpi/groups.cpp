#include "collectives/library/mpi/groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "collectives/library/mpi/agreement.hpp"
#include "collectives/library/mpi/failure.hpp"
#include "collectives/runtime/backoff.hpp"
#include "collectives/runtime/mpi/comm_key.hpp"
#include "collectives/runtime/mpi/handle.hpp"

namespace polyring::interposer {
namespace {

thread_local bool nested = false;

std::atomic<bool> finalizing{false};
/// Of communicators freed so far. A handle may come again.
std::atomic<std::uint64_t> frees{0};

using KnownComms = std::list<std::unique_ptr<KnownComm>>;

/// Each is moved from list to list by splice(), which takes no memory: MPI's callbacks must not throw.
struct Registry {
  std::mutex mutex;
  KnownComms live;
  KnownComms ending;
  KnownComms kept;  // have failed: others, or MPI, may still use what they hold
};

Registry& registry() {
  static auto* const all = new Registry;  // MPI may be finalized by another library's destructor
  return *all;
}

/// Takes one of those that live. Its ranks are waited for; what fails is kept as it is.
void begin_end(Registry& all, KnownComms::iterator group) noexcept {
  if ((*group)->is_idle()) {
    all.live.erase(group);
    return;
  }
  try {
    (*group)->begin_end();
    all.ending.splice(all.ending.end(), all.live, group);
  } catch (const std::exception&) {
    all.kept.splice(all.kept.end(), all.live, group);
  }
}

/// True when none is left.
bool sweep(Registry& all) noexcept {
  for (auto next = all.ending.begin(); next != all.ending.end();) {
    const auto group = next++;
    try {
      if ((*group)->has_ended()) all.ending.erase(group);
    } catch (const std::exception&) {
      all.kept.splice(all.kept.end(), all.ending, group);
    }
  }
  return all.ending.empty();
}

int communicator_freed(MPI_Comm, int, void* attribute, void*) noexcept {
  const Nested inside;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  frees.fetch_add(1, std::memory_order_release);
  const auto found =
      std::find_if(all.live.begin(), all.live.end(),
                   [&](const std::unique_ptr<KnownComm>& group) { return group.get() == attribute; });
  if (found == all.live.end()) return MPI_SUCCESS;  // MPI is being finalized
  begin_end(all, found);
  sweep(all);
  return MPI_SUCCESS;
}

int mpi_is_finalized(MPI_Comm, int, void*, void*) noexcept {
  const Nested inside;
  finalizing = true;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  frees.fetch_add(1, std::memory_order_release);
  while (!all.live.empty()) begin_end(all, all.live.begin());
  Backoff backoff(own_settings().timeout, true);
  while (!sweep(all)) {
    if (!backoff.again()) break;
  }
  all.kept.splice(all.kept.end(), all.ending);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  write_counters(rank);
  return MPI_SUCCESS;
}

int key() {
  static const int own = [] {
    own_settings();  // the callbacks use them, and must not fail to read them
    return make_comm_key(communicator_freed, mpi_is_finalized);
  }();
  return own;
}

/// All that may fail at this rank alone comes before the ranks agree. From then on the group holds a failure.
KnownComm& make_group(MPI_Comm comm) {
  const ErrorsReturned returned(comm);
  KnownComms made;
  KnownComm& group = *made.emplace_back(std::make_unique<KnownComm>(comm));
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    sweep(all);
    check_mpi(PMPI_Comm_set_attr(comm, key(), &group), "MPI_Comm_set_attr");
    all.live.splice(all.live.end(), made);
  }
  group.agree(comm);
  return group;
}

void say_which_mpi() noexcept {
  if (launched_rank() != 0) return;
  try {
    say(fmt::format(
        "this libpolyring_mpi.so is for {}, and the program's MPI is {}; every call goes on to that, so "
        "preload the library that was built for it",
        MpiWorld::built_with(), MpiWorld::library()));
  } catch (const std::exception&) {
    say("this libpolyring_mpi.so is for another MPI than the program's");
  }
}

/// The library would read the handles of another kind of MPI as its own. Fortran asks, too, and catches
/// nothing.
bool is_another_mpi() noexcept {
#if defined(OPEN_MPI)
  constexpr bool kIsOpenMpi = true;
#else
  constexpr bool kIsOpenMpi = false;
#endif
  constexpr std::size_t kLongest = 16384;  // another MPI's text may be longer than this one's
  static_assert(kLongest >= MPI_MAX_LIBRARY_VERSION_STRING);
  std::array<char, kLongest> version{};
  int length = 0;
  PMPI_Get_library_version(version.data(), &length);
  if (std::string_view(version.data()).starts_with("Open MPI") == kIsOpenMpi) return false;
  say_which_mpi();
  return true;
}

}  // namespace

bool is_nested() { return nested; }
Nested::Nested() : before_(std::exchange(nested, true)) {}
Nested::~Nested() { nested = before_; }

std::optional<Why> closed() noexcept {
  static const bool is_other = is_another_mpi();
  if (is_other) return Why::other_mpi;
  if (finalizing.load(std::memory_order_relaxed)) return Why::finalizing;
  return std::nullopt;
}

KnownComm& group_of(MPI_Comm comm) {
  struct Last {
    MPI_Comm comm = MPI_COMM_NULL;
    KnownComm* group = nullptr;
    std::uint64_t frees = 0;
  };
  thread_local Last last;
  const std::uint64_t now = frees.load(std::memory_order_acquire);
  if (last.group != nullptr && last.comm == comm && last.frees == now) return *last.group;
  void* const attribute = comm_attribute(comm, key());
  KnownComm& group = attribute != nullptr ? *static_cast<KnownComm*>(attribute) : make_group(comm);
  last = {comm, &group, now};
  return group;
}

}  // namespace polyring::interposer
