#include "reports/files.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>

#include "reports/result.hpp"
#include "topology/error.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const fs::path& path, const std::string& reason) {
  usage_error("cannot write '{}': {}; name a path in a folder that exists and that you may write to",
              path.string(), reason);
}

/// `r/` and `r` are one folder; names are appended to the latter.
fs::path without_slash(const fs::path& path) {
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

/// A name beside `path` that no other process uses.
fs::path temporary_name(const fs::path& path) {
  fs::path name = path;
  return name.replace_filename(fmt::format(".{}.{}.tmp", path.filename().string(), ::getpid()));
}

fs::path numbered(const fs::path& path, int number) {
  return number == 0 ? path : fs::path(fmt::format("{}.{}", path.string(), number));
}

/// Returns why `content` could not be written, or nothing when it was.
std::string try_write(const fs::path& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  return file ? "" : std::strerror(errno);
}

/// Takes the first free name by creating an empty file there, which the finished file then replaces: two jobs
/// that end at one moment get two names.
fs::path reserve_file(const fs::path& path) {
  for (int number = 0;; ++number) {
    fs::path name = numbered(path, number);
    if (std::FILE* file = std::fopen(name.c_str(), "wx")) {
      std::fclose(file);
      return name;
    }
    if (errno != EEXIST) cannot_write(path, std::strerror(errno));
  }
}

fs::path reserve_folder(const fs::path& path) {
  for (int number = 0;; ++number) {
    fs::path name = numbered(path, number);
    std::error_code error;
    if (fs::create_directory(name, error) || (!error && fs::is_empty(name, error) && !error)) return name;
    if (error && error != std::errc::file_exists && error != std::errc::not_a_directory) {
      cannot_write(path, error.message());
    }
  }
}

/// Removes the temporary file or folder if something throws before it has its name.
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

/// `target` is reserved: empty, and ours.
void move_into_place(const fs::path& from, const fs::path& target) {
  std::error_code error;
  fs::rename(from, target, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(target, ignored);
  cannot_write(target, error.message());
}

}  // namespace

std::string read_file(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) usage_error("'{}' is a folder; name a file in it", path.string());
  std::ifstream file(path, std::ios::binary);
  if (!file) usage_error("cannot read '{}': {}; check the name", path.string(), std::strerror(errno));
  std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) usage_error("cannot read '{}': the disk failed; copy the file again", path.string());
  return content;
}

void write_file(const fs::path& path, std::string_view content) {
  const std::string failure = try_write(path, content);
  if (!failure.empty()) cannot_write(path, failure);
}

fs::path create_file(const fs::path& path, std::string_view content) {
  check_writable(path);
  const Temporary temporary(temporary_name(path));
  const std::string failure = try_write(temporary.path(), content);
  if (!failure.empty()) cannot_write(path, failure);
  fs::path target = reserve_file(path);
  move_into_place(temporary.path(), target);
  return target;
}

void replace_file(const fs::path& path, std::string_view content) {
  check_writable(path);
  const Temporary temporary(temporary_name(path));
  const std::string failure = try_write(temporary.path(), content);
  if (!failure.empty()) cannot_write(path, failure);
  std::error_code error;
  fs::rename(temporary.path(), path, error);
  if (error) cannot_write(path, error.message());
}

fs::path create_folder(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  const fs::path wanted = without_slash(path);
  if (wanted.empty()) cannot_write(path, "the name is empty");
  std::error_code error;
  if (wanted.has_parent_path()) fs::create_directories(wanted.parent_path(), error);
  if (error) cannot_write(path, error.message());
  const Temporary temporary(temporary_name(wanted));
  if (!fs::create_directory(temporary.path(), error) && error) cannot_write(path, error.message());
  fill(temporary.path());
  fs::path target = reserve_folder(wanted);
  move_into_place(temporary.path(), target);
  return target;
}

void check_writable(const fs::path& path) {
  std::error_code error;
  if (!path.has_filename() || fs::is_directory(path, error)) cannot_write(path, "it is a folder, not a file");
  const Temporary probe(temporary_name(path));
  const std::string failure = try_write(probe.path(), "");
  if (!failure.empty()) cannot_write(path, failure);
}

}  // namespace polyring
