#include "tests/software_gpu/protection.hpp"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include "tests/sanitized.hpp"

namespace polyring::software_gpu {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitized = true;
#elif defined(__has_feature)
constexpr bool kThreadSanitized = __has_feature(thread_sanitizer);
#else
constexpr bool kThreadSanitized = false;
#endif

constexpr std::uintptr_t kPage = 4096;
constexpr std::uintptr_t kAlignment = 64 * 1024;
constexpr int kMostRanges = 8192;

/// All device memory, one region for each device of the plan and one for memory of other processes.
/// Sanitizers cannot look at all addresses.
constexpr std::size_t kReserved = std::size_t{kSanitized ? 64 : 256} << 30;

// What threads do here orders nothing: ThreadSanitizer must see races between their operations. So all that
// they share is read and written without order; an allocation is known to those who got its address.
constexpr auto kRelaxed = std::memory_order_relaxed;

/// One allocation. The signal handler reads these, so that they are never moved and need no lock.
struct Range {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // 0: free
  std::atomic<int> owner{0};
  std::atomic<bool> open{false};
};

constexpr int kClosing = -1;

struct Region {
  std::uintptr_t begin = 0, end = 0;
  std::map<std::uintptr_t, Range*> ranges;  // by their begin
};

struct Protection {
  std::mutex mutex;
  std::uintptr_t begin = 0, end = 0;
  std::array<Region, 65> regions;  // the last used one is for memory of other processes
  int region_count = 0;
  std::array<Range, kMostRanges> ranges;
  std::atomic<int> ranges_used{0};
  std::array<int, 15> keys{};
  int key_count = 0;                          // 0: pages are protected
  std::atomic<int> threads_with_rights{0};    // kClosing: the last one closes all pages
  std::array<struct sigaction, 2> chained{};  // of SIGSEGV and SIGBUS
};

// Never destroyed: streams work until the process ends.
Protection& protection() {
  static Protection* const the_one = new Protection;
  return *the_one;
}
// For the signal handler.
Protection* begun_protection = nullptr;

struct ThreadRights {
  int depth = 0;
  DeviceSet devices = 0;
  sigjmp_buf* escape = nullptr;
  std::uintptr_t touched = 0;
};
// So that the signal handler allocates nothing.
__attribute__((tls_model("initial-exec"))) thread_local ThreadRights rights;

bool has_keys() { return protection().key_count > 0; }

// --- Messages that a signal handler may write
// -----------------------------------------------------------------------

void write_text(const char* text) {
  std::size_t length = 0;
  while (text[length] != '\0') ++length;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, length);
}

void write_number(std::uintptr_t value, unsigned base) {
  char digits[24];
  std::size_t at = sizeof digits;
  do {
    digits[--at] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, digits + at, sizeof digits - at);
}

// --- Pages
// ----------------------------------------------------------------------------------------------------------

Range* range_of(Protection& all, std::uintptr_t address) {
  const int used = all.ranges_used.load(kRelaxed);
  for (int index = 0; index < used; ++index) {
    Range& range = all.ranges[static_cast<std::size_t>(index)];
    if (address >= range.begin.load(kRelaxed) && address < range.end.load(kRelaxed)) return &range;
  }
  return nullptr;
}

/// Where the range is being unmapped, its pages stay or become closed either way.
void protect(const Range& range, int rights_of_pages) {
  const std::uintptr_t begin = range.begin.load(kRelaxed), end = range.end.load(kRelaxed);
  if (begin == 0 || end <= begin) return;
  mprotect(reinterpret_cast<void*>(begin), end - begin,
           rights_of_pages);  // NOLINT(performance-no-int-to-ptr)
}

void open_pages(Range& range) {
  range.open.store(true, kRelaxed);
  protect(range, PROT_READ | PROT_WRITE);
}

void close_all_pages(Protection& all) {
  const int used = all.ranges_used.load(kRelaxed);
  for (int index = 0; index < used; ++index) {
    Range& range = all.ranges[static_cast<std::size_t>(index)];
    if (range.open.exchange(false, kRelaxed)) protect(range, PROT_NONE);
  }
}

void begin_rights(Protection& all) {
  int threads = all.threads_with_rights.load(kRelaxed);
  for (;;) {
    if (threads == kClosing) {
      sched_yield();
      threads = all.threads_with_rights.load(kRelaxed);
    } else if (all.threads_with_rights.compare_exchange_weak(threads, threads + 1, kRelaxed)) {
      return;
    }
  }
}

void end_rights(Protection& all) {
  int threads = all.threads_with_rights.load(kRelaxed);
  while (!all.threads_with_rights.compare_exchange_weak(threads, threads == 1 ? kClosing : threads - 1,
                                                        kRelaxed)) {
  }
  if (threads > 1) return;
  close_all_pages(all);
  all.threads_with_rights.store(0, kRelaxed);
}

/// Sets this thread's rights as its keys say them.
void set_keys(DeviceSet devices) {
  const Protection& all = protection();
  for (int key = 0; key < all.key_count; ++key) {
    DeviceSet of_key = 0;
    for (int device = key; device < 64; device += all.key_count) of_key |= only(device);
    pkey_set(all.keys[static_cast<std::size_t>(key)], (devices & of_key) != 0 ? 0 : PKEY_DISABLE_ACCESS);
  }
}

void change_rights(int depth, DeviceSet devices) {
  const bool begins = rights.depth == 0 && depth > 0;
  const bool ends = rights.depth > 0 && depth == 0;
  rights.depth = depth;
  rights.devices = devices;
  if (has_keys()) {
    set_keys(devices);
  } else if (begins) {
    begin_rights(protection());
  } else if (ends) {
    end_rights(protection());
  }
}

// --- Signals
// --------------------------------------------------------------------------------------------------------

void say_who_touched(const Range* range, std::uintptr_t address) {
  write_text(rights.depth > 0 ? "software GPU: an operation touched memory that is not there, at 0x"
                              : "software GPU: the host touched device memory at 0x");
  write_number(address, 16);
  if (range != nullptr) {
    write_text(", byte ");
    write_number(address - range->begin.load(kRelaxed), 10);
    write_text(" of an allocation on device ");
    write_number(static_cast<std::uintptr_t>(range->owner.load(kRelaxed)), 10);
  } else {
    write_text(", which is not allocated");
  }
  write_text("\n");
}

/// Does what would have been done without the software GPU. ThreadSanitizer would report a crash, and may
/// wait for itself while it does.
void chain(int signal_number, siginfo_t* info, void* context) {
  if (kThreadSanitized) {
    signal(signal_number, SIG_DFL);
    return;
  }
  const struct sigaction& before = begun_protection->chained[signal_number == SIGSEGV ? 0 : 1];
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal_number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal_number);
  } else {
    signal(signal_number, SIG_DFL);  // the same instruction faults again
  }
}

void on_fault(int signal_number, siginfo_t* info, void* context) {
  Protection& all = *begun_protection;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool device_memory = address >= all.begin && address < all.end;
  Range* const range = device_memory ? range_of(all, address) : nullptr;
  const bool may =
      range != nullptr && rights.depth > 0 && (rights.devices & only(range->owner.load(kRelaxed))) != 0;
  if (may && signal_number == SIGSEGV && all.key_count == 0) {
    open_pages(*range);
    return;
  }
  if (rights.escape != nullptr) {
    rights.touched = address;
    siglongjmp(*rights.escape, 1);
  }
  if (device_memory) say_who_touched(range, address);
  chain(signal_number, info, context);
}

void catch_faults(Protection& all) {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  begun_protection = &all;
  sigaction(SIGSEGV, &action, &all.chained[0]);
  sigaction(SIGBUS, &action, &all.chained[1]);
}

// --- Addresses
// ------------------------------------------------------------------------------------------------------

/// Straight from the kernel: sanitizers must not prepare for all these addresses at once.
void* map_nothing(void* at, std::size_t bytes, int flags) {
  const long mapped =
      syscall(SYS_mmap, at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0L);
  return mapped == -1 ? nullptr : reinterpret_cast<void*>(mapped);  // NOLINT(performance-no-int-to-ptr)
}

void reserve_addresses(Protection& all, const Plan& plan) {
  std::size_t most = kAlignment;
  for (const DevicePlan& device : plan.devices) most = std::max(most, device.memory + (std::size_t{1} << 30));
  all.region_count = static_cast<int>(plan.devices.size()) + 1;
  const auto regions = static_cast<std::size_t>(all.region_count);
  std::size_t bytes = std::min(most, kReserved / regions) / kAlignment * kAlignment;
  void* reserved = map_nothing(nullptr, bytes * regions, 0);
  while (reserved == nullptr && bytes > kAlignment) {
    bytes = bytes / 2 / kAlignment * kAlignment;
    reserved = map_nothing(nullptr, bytes * regions, 0);
  }
  if (reserved == nullptr) fail_loudly("no addresses for device memory");
  madvise(reserved, bytes * regions, MADV_DONTDUMP);
  all.begin = reinterpret_cast<std::uintptr_t>(reserved);
  all.end = all.begin + bytes * regions;
  for (std::size_t index = 0; index < regions; ++index)
    all.regions[index] = {all.begin + index * bytes, all.begin + (index + 1) * bytes, {}};
}

/// The first gap of a region that holds so many bytes and an unused page after them; 0 if there is none.
std::uintptr_t find_gap(const Region& region, std::size_t bytes) {
  std::uintptr_t candidate = (region.begin + kAlignment - 1) / kAlignment * kAlignment;
  for (const auto& [begin, range] : region.ranges) {
    if (candidate + bytes + kPage <= begin) return candidate;
    candidate = (range->end.load(kRelaxed) + kPage + kAlignment - 1) / kAlignment * kAlignment;
  }
  return candidate + bytes + kPage <= region.end ? candidate : 0;
}

Range& unused_range(Protection& all) {
  const int used = all.ranges_used.load(kRelaxed);
  for (int index = 0; index < used; ++index) {
    Range& range = all.ranges[static_cast<std::size_t>(index)];
    if (range.end.load(kRelaxed) == 0) return range;
  }
  if (used == kMostRanges) fail_loudly("more allocations than the software GPU keeps track of");
  all.ranges_used.store(used + 1, kRelaxed);
  return all.ranges[static_cast<std::size_t>(used)];
}

void make_keys(Protection& all, const Plan& plan) {
  const std::size_t wanted = std::min(plan.devices.size(), all.keys.size());
  while (static_cast<std::size_t>(all.key_count) < wanted) {
    const int key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    if (key < 0) break;
    all.keys[static_cast<std::size_t>(all.key_count++)] = key;
  }
}

}  // namespace

void begin_protection(const Plan& plan) {
  Protection& all = protection();
  make_keys(all, plan);
  reserve_addresses(all, plan);
  catch_faults(all);
}

const char* protection_name() { return has_keys() ? "protection keys" : "page protection"; }

std::byte* map_device_memory(int descriptor, std::size_t bytes, int owner, int near) {
  Protection& all = protection();
  const std::lock_guard lock(all.mutex);
  Region& region = all.regions[static_cast<std::size_t>(near >= 0 ? near : all.region_count - 1)];
  const std::uintptr_t gap = find_gap(region, bytes);
  if (gap == 0) return nullptr;
  void* const at = reinterpret_cast<void*>(gap);  // NOLINT(performance-no-int-to-ptr)
  if (mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, descriptor, 0) == MAP_FAILED) return nullptr;
  madvise(at, bytes, MADV_DONTFORK);
  if (has_keys()) {
    const int key = all.keys[static_cast<std::size_t>(owner % all.key_count)];
    pkey_mprotect(at, bytes, PROT_READ | PROT_WRITE, key);
  }
  Range& range = unused_range(all);
  range.owner.store(owner, kRelaxed);
  range.open.store(false, kRelaxed);
  range.begin.store(gap, kRelaxed);
  range.end.store(gap + bytes, kRelaxed);
  region.ranges.emplace(gap, &range);
  return static_cast<std::byte*>(at);
}

void unmap_device_memory(std::byte* begin) {
  Protection& all = protection();
  const std::lock_guard lock(all.mutex);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  for (Region& region : all.regions) {
    const auto found = region.ranges.find(address);
    if (found == region.ranges.end()) continue;
    Range& range = *found->second;
    const std::size_t bytes = range.end.load(kRelaxed) - address;
    range.end.store(0, kRelaxed);
    range.begin.store(0, kRelaxed);
    region.ranges.erase(found);
    map_nothing(begin, bytes, MAP_FIXED);
    return;
  }
}

Rights::Rights(DeviceSet devices) : before_(rights.devices) {
  change_rights(rights.depth + 1, before_ | devices);
}

Rights::~Rights() { change_rights(rights.depth - 1, before_); }

void allow(DeviceSet devices) { change_rights(rights.depth + 1, rights.devices | devices); }

void forbid() {
  if (rights.depth == 0) fail_loudly("more calls of polyring_software_gpu_forbid() than of allow()");
  change_rights(rights.depth - 1, rights.depth == 1 ? 0 : rights.devices);
}

std::optional<std::uintptr_t> touches_other_memory(DeviceSet devices, const std::function<void()>& work) {
  const ThreadRights before = rights;
  const auto restore = [&before] {
    rights.escape = before.escape;
    change_rights(before.depth, before.devices);
  };
  sigjmp_buf escape;
  if (sigsetjmp(escape, 0) != 0) {
    restore();
    return rights.touched;
  }
  change_rights(before.depth + 1, devices);
  rights.escape = &escape;
  try {
    work();
  } catch (...) {
    restore();
    throw;
  }
  restore();
  return std::nullopt;
}

}  // namespace polyring::software_gpu
