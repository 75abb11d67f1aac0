#include "base/naming.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace polyring {
namespace {

namespace fs = std::filesystem;

Named by_rename(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return Named::yes;
  if (errno == EEXIST) return Named::taken;
  const bool unknown = errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
  return unknown ? Named::not_this_way : Named::failed;
}

bool are_one_file(const fs::path& a, const fs::path& b) {
  struct stat first {};
  struct stat second {};
  return ::lstat(a.c_str(), &first) == 0 && ::lstat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

Named by_link(const fs::path& from, const fs::path& to) {
  if (::link(from.c_str(), to.c_str()) != 0) {
    const int failure = errno;
    if (failure == EPERM || failure == ENOSYS || failure == EOPNOTSUPP) return Named::not_this_way;
    // NFS may have made the link and lost the answer.
    const bool made = are_one_file(from, to);
    errno = failure;
    if (!made) return failure == EEXIST ? Named::taken : Named::failed;
  }
  ::unlink(from.c_str());
  return Named::yes;
}

Named by_lock(const fs::path& from, const fs::path& to) {
  const fs::path folder = to.has_parent_path() ? to.parent_path() : fs::path(".");
  const int locked = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (locked < 0) return Named::failed;
  Named named = Named::failed;
  struct stat there {};
  if (::flock(locked, LOCK_EX) == 0) {
    if (::lstat(to.c_str(), &there) == 0) {
      named = Named::taken;
    } else if (errno == ENOENT && ::rename(from.c_str(), to.c_str()) == 0) {
      named = Named::yes;
    }
  }
  const int failure = errno;
  ::close(locked);
  errno = failure;
  return named;
}

}  // namespace

Named give_name(const fs::path& from, const fs::path& to, Naming way) {
  switch (way) {
    case Naming::rename:
      return by_rename(from, to);
    case Naming::link:
      return by_link(from, to);
    case Naming::lock:
      return by_lock(from, to);
  }
  return Named::not_this_way;
}

}  // namespace polyring
