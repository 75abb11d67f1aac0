// Loaded before a program (LD_PRELOAD) it makes one rank late by a fifth of what it computes, as interrupts
// on its core would: they come after so much computing that they and what their handler waits for are a fifth
// of it. While the rank sleeps it is left alone. POLYRING_LATE_RANK says which rank.
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace {

constexpr long kLeastBetween_ns = 1'000'000;
constexpr int kPartLate = 5;

volatile long handler_ns = 0;
volatile sig_atomic_t interrupts = 0;

/// Of the time that this thread has run: not what others on its core take from it.
long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void be_late(int, siginfo_t*, void*) {
  const int error = errno;
  interrupts = interrupts + 1;
  for (const long end = now_ns() + handler_ns; handler_ns > 0 && now_ns() < end;) {
  }
  errno = error;
}

bool is_late_rank() {
  const char* const wanted = std::getenv("POLYRING_LATE_RANK");
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (const char* rank = std::getenv(name)) return wanted != nullptr && std::string_view(wanted) == rank;
  }
  return false;
}

/// An event that signals this thread after each `period_ns` that it runs; not enabled. -1: the kernel has
/// none.
int interrupts_of_this_thread(long period_ns) {
  struct sigaction action {};
  action.sa_sigaction = be_late;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (sigaction(SIGRTMAX - 1, &action, nullptr) != 0) return -1;
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = PERF_TYPE_SOFTWARE;
  event.config = PERF_COUNT_SW_TASK_CLOCK;
  event.sample_period = static_cast<unsigned long>(period_ns);
  event.wakeup_events = 1;
  event.disabled = 1;
  event.exclude_kernel = 1;
  const auto file = static_cast<int>(syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (file < 0) return -1;
  const f_owner_ex owner{F_OWNER_TID, static_cast<pid_t>(syscall(SYS_gettid))};
  const bool signals = fcntl(file, F_SETSIG, SIGRTMAX - 1) == 0 && fcntl(file, F_SETOWN_EX, &owner) == 0 &&
                       fcntl(file, F_SETFL, O_ASYNC) == 0;
  return signals ? file : -1;
}

long computing_ns() {
  const long begin = now_ns();
  volatile unsigned value = 1;
  for (int i = 0; i < 1'000'000; ++i) value = value * 1664525 + 1013904223;
  return now_ns() - begin;
}

/// What an interrupt costs whose handler does nothing, by how much longer computing takes with them: the
/// lower quartile, since other ranks start meanwhile, and sleep when this one's computing is measured.
long cost_of_interrupt_ns(int file) {
  std::array<long, 101> costs{};
  for (long& cost : costs) {
    const long alone = computing_ns();
    interrupts = 0;
    ioctl(file, PERF_EVENT_IOC_ENABLE, 0);
    const long interrupted = computing_ns();
    ioctl(file, PERF_EVENT_IOC_DISABLE, 0);
    cost = (interrupted - alone) / std::max<long>(1, interrupts);
  }
  std::ranges::sort(costs);
  return std::max(0L, costs[costs.size() / 4]);
}

__attribute__((constructor)) void start() {
  if (!is_late_rank()) return;
  const int file = interrupts_of_this_thread(kLeastBetween_ns);
  if (file < 0) {
    std::perror("late_rank: the kernel counts no time of this thread");
    std::_Exit(1);
  }
  const long cost_ns = cost_of_interrupt_ns(file);
  const long between_ns = std::max(kLeastBetween_ns, kPartLate * cost_ns);
  const long late_ns = between_ns / kPartLate;
  handler_ns = late_ns - cost_ns;
  auto period_ns = static_cast<unsigned long>(between_ns + late_ns);
  ioctl(file, PERF_EVENT_IOC_PERIOD, &period_ns);
  ioctl(file, PERF_EVENT_IOC_ENABLE, 0);
}

}  // namespace
