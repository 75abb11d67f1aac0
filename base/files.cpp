#include "base/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/naming.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0666;  // less the umask, as everywhere
constexpr mode_t kFolderMode = 0777;
constexpr int kTries = 100;  // a name of 64 random bits is free the first time

[[noreturn]] void wrong_path(const fs::path& path, const std::string& reason) {
  usage_error("cannot write '{}': {}; name a path in a folder that exists and that you may write to",
              path.string(), reason);
}

/// There is something to write by now.
[[noreturn]] void not_written(const fs::path& path, int failure) {
  throw Error(ExitCode::output,
              fmt::format("cannot write '{}': {}; check its disk and its folder, and run this again",
                          path.string(), std::strerror(failure)));
}

enum class Begun { no, yes };  // whether there is something to write

/// Before there is, it is mostly the path that is wrong.
[[noreturn]] void not_created(const fs::path& path, int failure, Begun begun = Begun::no) {
  const bool disk = failure == ENOSPC || failure == EDQUOT || failure == EFBIG || failure == EIO;
  if (disk || begun == Begun::yes) not_written(path, failure);
  wrong_path(path, std::strerror(failure));
}

/// `r/` and `r` are one folder; names are appended to the latter.
fs::path without_slash(const fs::path& path) {
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

/// A hidden name beside `path`, which tells whose it is. Names may have 255 bytes.
fs::path hidden_name(const fs::path& path, const std::string& ending) {
  constexpr std::size_t kKept = 200;
  fs::path name = path;
  return name.replace_filename(fmt::format(".{}.{}", path.filename().string().substr(0, kKept), ending));
}

/// One that nobody can guess.
fs::path temporary_name(const fs::path& path) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    throw Error(ExitCode::internal, fmt::format("getrandom failed: {}", std::strerror(errno)));
  return hidden_name(path, fmt::format("{:016x}.tmp", random));
}

fs::path numbered(const fs::path& path, int number) {
  return number == 0 ? path : fs::path(fmt::format("{}.{}", path.string(), number));
}

/// Returns -1 when something has the name. Not mkostemp(3), which makes files that only their owner may read.
int create_exclusively(const fs::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, kFileMode);
}

/// Removes a temporary file or folder, unless it has got another name.
class Temporary {
 public:
  explicit Temporary(fs::path path) : path_(std::move(path)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// An empty file beside `path`.
OpenFile temporary_file(const fs::path& path, Begun begun) {
  for (int i = 0; i < kTries; ++i) {
    const fs::path name = temporary_name(path);
    const int descriptor = create_exclusively(name);
    if (descriptor >= 0) return {descriptor, name};
    if (errno != EEXIST) break;
  }
  not_created(path, errno, begun);
}

/// An empty folder beside `path`.
fs::path temporary_folder(const fs::path& path) {
  for (int i = 0; i < kTries; ++i) {
    fs::path name = temporary_name(path);
    if (::mkdir(name.c_str(), kFolderMode) == 0) return name;
    if (errno != EEXIST) break;
  }
  not_created(path, errno);
}

/// Returns errno, or 0 when all is written.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Returns errno, or 0 when all is on the disk, as far as the file system can tell.
int sync_all(int descriptor) {
  return ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOSYS ? 0 : errno;
}

/// Whether something has the name, be it a link to nothing.
bool is_there(const fs::path& name) {
  struct stat status {};
  return ::lstat(name.c_str(), &status) == 0;
}

/// A name is on the disk when its folder is. Where folders cannot be synchronised there is nothing to do.
void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

void sync_files_in(const fs::path& folder, const fs::path& wanted) {
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (!entries->is_regular_file(error)) continue;
    const OpenFile file(::open(entries->path().c_str(), O_RDONLY | O_CLOEXEC), entries->path());
    if (file.descriptor() < 0) not_written(wanted, errno);
    if (const int failure = sync_all(file.descriptor())) not_written(wanted, failure);
  }
  if (error) not_written(wanted, error.value());
}

/// Writes `content` to a temporary file for `path`, and hands its name to `finish`.
template <typename Finish>
auto write_beside(const fs::path& path, std::string_view content, const Finish& finish) {
  const OpenFile file = temporary_file(path, Begun::yes);
  const Temporary temporary(file.path());
  if (const int failure = write_all(file.descriptor(), content)) not_written(path, failure);
  if (const int failure = sync_all(file.descriptor())) not_written(path, failure);
  return finish(temporary.path());
}

void refuse_folder(const fs::path& path) {
  std::error_code error;
  if (!path.has_filename() || fs::is_directory(path, error)) wrong_path(path, "it is a folder, not a file");
}

/// While one lives, no other process has one for the same path.
class Lock {
 public:
  explicit Lock(const fs::path& path) : name_(hidden_name(path, "lock")) {
    while (!try_to_lock(path)) ::close(descriptor_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    ::unlink(name_.c_str());
    ::close(descriptor_);
  }

 private:
  /// False when who had the lock before has removed the file meanwhile, and others lock a new one.
  bool try_to_lock(const fs::path& path) {
    constexpr std::chrono::milliseconds kPause{20};
    constexpr std::chrono::minutes kLongest{1};  // what is done under a lock takes milliseconds
    descriptor_ = ::open(name_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kFileMode);
    if (descriptor_ < 0) not_written(path, errno);
    const auto deadline = std::chrono::steady_clock::now() + kLongest;
    while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) break;  // a file system without locks, which is rare
      if (std::chrono::steady_clock::now() > deadline) give_up(path);
      std::this_thread::sleep_for(kPause);
    }
    struct stat ours {};
    struct stat there {};
    return ::fstat(descriptor_, &ours) == 0 && ::stat(name_.c_str(), &there) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
  }

  [[noreturn]] void give_up(const fs::path& path) const {
    ::close(descriptor_);
    throw Error(ExitCode::output, fmt::format("cannot write '{}': another process has locked '{}' for a "
                                              "minute; end that, and run this again",
                                              path.string(), name_.string()));
  }

  fs::path name_;
  int descriptor_ = -1;
};

}  // namespace

OpenFile::OpenFile(OpenFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OpenFile::write(std::string_view content) const {
  if (const int failure = write_all(descriptor_, content)) not_written(path_, failure);
}

void OpenFile::sync() const {
  if (const int failure = sync_all(descriptor_)) not_written(path_, failure);
}

std::string read_file(const fs::path& path) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  const auto refuse = [&] { usage_error("'{}' is larger than 1 GiB; name another file", path.string()); };
  std::error_code error;
  if (fs::is_directory(path, error)) usage_error("'{}' is a folder; name a file in it", path.string());
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  if (file.descriptor() < 0)
    usage_error("cannot read '{}': {}; check the name", path.string(), std::strerror(errno));
  struct stat status {};
  if (::fstat(file.descriptor(), &status) == 0 && status.st_size > static_cast<off_t>(kMost)) refuse();
  std::string content;
  std::array<char, 1 << 16> block;
  while (const ssize_t bytes = ::read(file.descriptor(), block.data(), block.size())) {
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) usage_error("cannot read '{}': {}; copy it again", path.string(), std::strerror(errno));
    content.append(block.data(), static_cast<std::size_t>(bytes));
    if (content.size() > kMost) refuse();  // a device or a pipe, which may never end
  }
  return content;
}

std::string read_text_file(const fs::path& path) {
  constexpr Bytes kLargest{64u << 20};
  std::error_code failed;
  const auto status = fs::status(path, failed);
  if (!fs::exists(status)) {
    usage_error("there is no file '{}'; check the path", path.string());
  }
  if (!fs::is_regular_file(status)) {
    usage_error("'{}' is not a regular file; give the path of a file", path.string());
  }
  const auto size = fs::file_size(path, failed);
  if (!failed && size > kLargest.value) {
    usage_error("'{}' has {} bytes, more than the {} that a topology can have; give another file",
                path.string(), size, to_text(kLargest));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file && !file.eof()) usage_error("'{}' cannot be read: {}", path.string(), std::strerror(errno));
  if (text.empty()) usage_error("'{}' is empty or cannot be read; give another file", path.string());
  return std::string(without_byte_order_mark(text));
}

void write_file(const fs::path& path, std::string_view content) {
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kFileMode);
  if (descriptor < 0) not_written(path, errno);
  const OpenFile file(descriptor, path);
  file.write(content);
}

fs::path publish_file(const fs::path& from, const fs::path& path) {
  for (int number = 0;; ++number) {
    const fs::path name = numbered(path, number);
    Named named = Named::not_this_way;
    for (const Naming way : kNamings) {
      named = give_name(from, name, way);
      if (named != Named::not_this_way) break;
    }
    if (named == Named::taken) continue;
    if (named != Named::yes) not_written(path, errno);
    sync_folder(folder_of(path));
    return name;
  }
}

fs::path create_file(const fs::path& path, std::string_view content) {
  refuse_folder(path);
  return write_beside(path, content, [&](const fs::path& written) { return publish_file(written, path); });
}

OpenFile create_open_file(const fs::path& path) {
  refuse_folder(path);
  for (int number = 0;; ++number) {
    const fs::path name = numbered(path, number);
    const int descriptor = create_exclusively(name);
    if (descriptor >= 0) return {descriptor, name};
    if (errno != EEXIST) not_created(path, errno);
  }
}

OpenFile reopen_file_of_lines(const fs::path& path) {
  OpenFile file(::open(path.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC), path);
  struct stat status {};
  if (file.descriptor() < 0 || ::fstat(file.descriptor(), &status) != 0)
    usage_error("cannot open '{}': {}; check the name", path.string(), std::strerror(errno));
  if (!S_ISREG(status.st_mode)) usage_error("'{}' is not a regular file; check the name", path.string());
  off_t end = status.st_size;
  std::array<char, 1 << 16> block;
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(block.size()));
    const ssize_t bytes =
        ::pread(file.descriptor(), block.data(), static_cast<std::size_t>(end - begin), begin);
    if (bytes != end - begin) not_written(path, bytes < 0 ? errno : EIO);
    const std::size_t at = std::string_view(block.data(), static_cast<std::size_t>(bytes)).rfind('\n');
    if (at != std::string_view::npos) {
      end = begin + static_cast<off_t>(at) + 1;
      break;
    }
    end = begin;
  }
  if (end < status.st_size && ::ftruncate(file.descriptor(), end) != 0) not_written(path, errno);
  return file;
}

void update_file(const fs::path& path,
                 const std::function<std::string(const std::optional<std::string>&)>& change) {
  const Lock lock(path);
  std::optional<std::string> old;
  std::error_code unknown;  // then read_file() says why
  if (fs::exists(path, unknown) || unknown) old = read_file(path);
  write_beside(path, change(old), [&](const fs::path& written) {
    if (::rename(written.c_str(), path.c_str()) != 0) not_written(path, errno);
    sync_folder(folder_of(path));
  });
}

bool is_own_file(const fs::path& path, std::string_view content) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), path);
  struct stat status {};
  if (file.descriptor() < 0 || ::fstat(file.descriptor(), &status) != 0) return false;
  // Members of the file's group may be able to write: where each user has a group, every file is so.
  const bool own = S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & S_IWOTH) == 0;
  if (!own || static_cast<std::size_t>(status.st_size) != content.size()) return false;
  std::string found(content.size(), '\0');
  return ::pread(file.descriptor(), found.data(), found.size(), 0) == status.st_size && found == content;
}

fs::path create_folder(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  const fs::path wanted = without_slash(path);
  if (wanted.empty()) wrong_path(path, "the name is empty");
  std::error_code error;
  if (wanted.has_parent_path()) fs::create_directories(wanted.parent_path(), error);
  if (error) not_created(path, error.value());
  const Temporary temporary(temporary_folder(wanted));
  fill(temporary.path());
  sync_files_in(temporary.path(), path);
  for (int number = 0;; ++number) {
    fs::path name = numbered(wanted, number);
    // Of all that can have the name, this replaces an empty folder only.
    if (::rename(temporary.path().c_str(), name.c_str()) == 0) {
      sync_folder(folder_of(wanted));
      return name;
    }
    const int failure = errno;
    if (!is_there(name)) not_written(path, failure);
  }
}

void check_writable(const fs::path& path) {
  refuse_folder(path);
  const Temporary probe(temporary_file(path, Begun::no).path());
}

}  // namespace polyring
