#include "collectives/shared/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "topology/error.hpp"

namespace polyring {
namespace {

constexpr std::size_t kPage = 4096;

/// Different in every process.
std::uint64_t process_token() {
  static const std::uint64_t token = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return token;
}

[[noreturn]] void fail(std::size_t bytes, const char* call) {
  const int error = errno;
  throw Error(ExitCode::not_available, fmt::format("{} bytes of shared memory are not to be had: {}: {}",
                                                   bytes, call, strerror(error)));
}

/// Makes the file so long and gives it all of its memory, or says by errno why not. Without its memory, a
/// page that the system no longer has is found out by SIGBUS, and a limit of ulimit -f by SIGXFSZ.
bool fill(int descriptor, std::size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {
    errno = EFBIG;
    return false;
  }
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  errno = error;
  return error == 0;
}

}  // namespace

Segment::Segment(std::size_t bytes) {
  name_.bytes = (bytes + kPage - 1) / kPage * kPage;
  name_.process = getpid();
  name_.token = process_token();
  name_.descriptor = memfd_create("polyring", MFD_CLOEXEC);
  if (name_.descriptor < 0) fail(bytes, "memfd_create");
  const bool filled = fill(name_.descriptor, name_.bytes);
  void* address = MAP_FAILED;
  if (filled) address = mmap(nullptr, name_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, name_.descriptor, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    close(name_.descriptor);
    errno = error;
    fail(bytes, filled ? "mmap" : "posix_fallocate");
  }
  name_.address = static_cast<std::byte*>(address);
}

Segment::~Segment() {
  if (name_.address == nullptr) return;
  munmap(name_.address, name_.bytes);
  close(name_.descriptor);
}

Segment::Segment(Segment&& other) noexcept : name_(std::exchange(other.name_, {})) {}

Mapping::Mapping(const SegmentName& name) {
  if (name.token == process_token()) {
    address_ = name.address;
    return;
  }
  const int descriptor =
      open(fmt::format("/proc/{}/fd/{}", name.process, name.descriptor).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) fail(name.bytes, "open");
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
  address_ = static_cast<std::byte*>(address);
  bytes_ = name.bytes;
}

Mapping::~Mapping() {
  if (bytes_ > 0) munmap(address_, bytes_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

}  // namespace polyring
