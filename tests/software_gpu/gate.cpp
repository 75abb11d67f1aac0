#include "tests/software_gpu/gate.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace polyring::software_gpu {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

long futex(const std::atomic<std::uint32_t>* word, int operation, std::uint32_t value,
           const timespec* limit) {
  return syscall(SYS_futex, word, operation, value, limit, nullptr, 0);
}

}  // namespace

void Gate::wait(std::uint32_t ticket) const {
  for (int turn = 0; turn < 20; ++turn) {
    if (reached(ticket)) return;
    sched_yield();
  }
  // The limit is for the case that the process that should wake this one was killed in between.
  constexpr timespec kLimit{0, 20'000'000};
  for (;;) {
    const std::uint32_t seen = value_.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(seen - ticket) >= 0) return;
    futex(&value_, FUTEX_WAIT, seen, &kLimit);
  }
}

void Gate::advance(std::uint32_t ticket) {
  value_.store(ticket, std::memory_order_release);
  futex(&value_, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace polyring::software_gpu
