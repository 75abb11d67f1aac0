#include "collectives/runtime/shared/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/random_token.hpp"
#include "collectives/runtime/cause.hpp"
#include "collectives/runtime/shared/room.hpp"

namespace polyring {
namespace {

constexpr std::size_t kFilledAtOnce = std::size_t{16} << 20;
/// More than any address space.
constexpr std::size_t kMost = std::size_t{1} << 56;

/// Different in every process, in the child of a fork() as well.
std::uint64_t process_token() {
  static std::atomic<std::uint64_t> token = random_token();
  [[maybe_unused]] static const int renewed =
      pthread_atfork(nullptr, nullptr, [] { token = random_token(); });
  return token;
}

/// Allocates nothing: there may be no memory left.
std::size_t lines_of(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  std::array<char, kPage> text;
  std::size_t lines = 0;
  for (ssize_t got = 0; file >= 0 && (got = read(file, text.data(), text.size())) > 0;) {
    lines += static_cast<std::size_t>(std::count(text.data(), text.data() + got, '\n'));
  }
  if (file >= 0) close(file);
  return lines;
}

/// 0 where the system does not say.
std::size_t most_mappings() {
  std::array<char, 32> text{};
  const int file = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const bool told = read(file, text.data(), text.size() - 1) > 0;
  close(file);
  return told ? std::strtoull(text.data(), nullptr, 10) : 0;
}

/// What the user can do, beside using less memory.
std::string advice(int error, std::size_t bytes) {
  constexpr std::size_t kSome = 16;  // the system counts others than it lists
  const std::size_t most = error == ENOMEM ? most_mappings() : 0;
  if (most > 0 && lines_of("/proc/self/maps") + kSome >= most) {
    return fmt::format(
        "; this process has as many mappings of memory as the system allows, {}: raise vm.max_map_count, or "
        "run fewer ranks on a host",
        most);
  }
  if (const auto little = error == ENOMEM ? too_little_room(bytes) : std::nullopt)
    return fmt::format("; {} has {} left: use less, or run fewer ranks on it", little->place,
                       to_text(little->left));
  if (error == ENOENT)
    return "; the process that made it has ended, or is out of sight, as from one container to another";
  if (error == EMFILE) return "; raise the limit of open files (ulimit -n)";
  return "";
}

[[noreturn]] void fail(std::size_t bytes, const char* call) {
  const int error = errno;
  throw Error(ExitCode::not_available, fmt::format("{} bytes of shared memory are not to be had: {}: {}{}",
                                                   bytes, call, strerror(error), advice(error, bytes)));
}

/// Makes the file so long, or says by errno why not. A limit of ulimit -f would be found out by SIGXFSZ.
bool extend(int descriptor, std::size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {
    errno = EFBIG;
    return false;
  }
  return ftruncate(descriptor, static_cast<off_t>(bytes)) == 0;
}

/// Gives a part of the file its memory, or says by errno why not. Without it, a page that the system no
/// longer has is found out by SIGBUS.
bool fill_file(int descriptor, std::size_t begin, std::size_t bytes) {
  std::size_t most = kFilledAtOnce;
  std::size_t looked = 0;
  for (std::size_t done = 0; done < bytes;) {
    if (bytes >= kLooked && done >= looked) {  // others take some meanwhile
      if (too_little_room(bytes - done)) {
        errno = ENOMEM;  // Linux would give it, and end other processes
        return false;
      }
      looked = done + kLooked;
    }
    const std::size_t part = std::min(most, bytes - done);
    const int error = posix_fallocate(descriptor, static_cast<off_t>(begin + done), static_cast<off_t>(part));
    if (error == 0) {
      done += part;
      most = std::min(kFilledAtOnce, 2 * most);
    } else if (error == EINTR) {
      // Older Linux lets a signal undo the whole call: with a timer it would never get through to its end.
      most = std::max(kPage, part / 2);
    } else {
      errno = error;
      return false;
    }
  }
  return true;
}

/// Another process's, or a second descriptor of one of this process's.
int open_file(const SegmentName& name) {
  const bool own = name.token == process_token();
  const std::string process = own ? "self" : std::to_string(name.process);
  const int descriptor =
      open(fmt::format("/proc/{}/fd/{}", process, name.descriptor).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor >= 0) return descriptor;
  const int error = errno;
  // Where the process is in sight, it has closed the file, and may be about to say why.
  if (!own && access(fmt::format("/proc/{}", process).c_str(), F_OK) == 0) let_the_cause_be_said();
  errno = error;
  fail(name.bytes, "open");
}

/// Those that threads of this process have made, and may look for.
class OwnSegments {
 public:
  static void add(const Pages& pages) {
    const std::lock_guard lock(mutex());
    std::erase_if(all(), [](const auto& entry) { return entry.second.expired(); });
    all()[pages.get()] = pages;
  }
  /// Null when it is gone.
  static Pages find(std::byte* address) {
    const std::lock_guard lock(mutex());
    const auto found = all().find(address);
    return found == all().end() ? nullptr : found->second.lock();
  }

 private:
  static std::mutex& mutex() {
    static std::mutex own;
    return own;
  }
  static std::map<std::byte*, std::weak_ptr<std::byte>>& all() {
    static std::map<std::byte*, std::weak_ptr<std::byte>> own;
    return own;
  }
};

}  // namespace

Segment::Segment(std::size_t bytes, std::size_t filled) {
  if (bytes > kMost) {
    errno = ENOMEM;
    fail(bytes, "memfd_create");
  }
  const auto whole_pages = [](std::size_t of) { return (of + kPage - 1) / kPage * kPage; };
  name_.bytes = whole_pages(bytes);
  name_.process = getpid();
  name_.token = process_token();
  name_.descriptor = memfd_create("polyring", MFD_CLOEXEC);
  if (name_.descriptor < 0) fail(bytes, "memfd_create");
  const bool got =
      extend(name_.descriptor, name_.bytes) && fill_file(name_.descriptor, 0, whole_pages(filled));
  void* address = MAP_FAILED;
  if (got) address = mmap(nullptr, name_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, name_.descriptor, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    close(name_.descriptor);
    errno = error;
    fail(bytes, got ? "mmap" : "posix_fallocate");
  }
  name_.address = static_cast<std::byte*>(address);
  pages_ = Pages(name_.address, [name = name_](std::byte* memory) {
    munmap(memory, name.bytes);
    close(name.descriptor);
  });
  OwnSegments::add(pages_);
}

Mapping::Mapping(const SegmentName& name) : name_(name) {
  if (name.token == process_token()) {
    pages_ = OwnSegments::find(name.address);
    if (pages_) return;
    errno = ESRCH;
    fail(name.bytes, "the thread that made them");
  }
  const int descriptor = open_file(name);
  void* address = MAP_FAILED;
  struct stat file {};
  if (fstat(descriptor, &file) == 0 && static_cast<std::uint64_t>(file.st_size) < name.bytes) {
    errno = ENXIO;  // some other file, whose end must not be passed
  } else {
    address = mmap(nullptr, name.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  const int error = errno;
  close(descriptor);
  errno = error;
  if (address == MAP_FAILED) fail(name.bytes, "mmap");
  pages_ = Pages(static_cast<std::byte*>(address),
                 [bytes = name.bytes](std::byte* memory) { munmap(memory, bytes); });
}

void Mapping::fill(std::size_t begin, std::size_t bytes) const {
  const int descriptor = open_file(name_);
  const bool filled = fill_file(descriptor, begin, bytes);
  const int error = errno;
  close(descriptor);
  errno = error;
  if (!filled) fail(bytes, "posix_fallocate");
}

}  // namespace polyring
