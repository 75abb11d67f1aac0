// Files that appear whole or not at all, and in the place of others only where that is asked for.
//
// What is written stands beside its place first, under a name that nobody can guess, and gets its own name
// when it is whole and on the disk: no moment, a kill's neither, leaves an empty or half file there. Links
// are not followed. The modes are those that the umask leaves.
//
// Errors: a path that cannot be right is a usage Error. Once there is something to write, what goes wrong is
// an Error (output): the disk is full, or the folder has gone.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace polyring {

/// Reads a whole file. Throws a usage Error when it is missing, cannot be read, or is larger than 1 GiB.
std::string read_file(const std::filesystem::path& path);

/// Writes a file that nobody else writes at the same time, such as one in a folder from create_folder().
void write_file(const std::filesystem::path& path, std::string_view content);

/// Writes `content` to a file `path`, or with .1, .2, … appended when there is something of that name, and
/// returns its path.
std::filesystem::path create_file(const std::filesystem::path& path, std::string_view content);

/// The same for a folder, which `fill` fills; folders above it are created. An empty folder `path` is used as
/// it is. When `fill` throws, nothing is left behind.
std::filesystem::path create_folder(const std::filesystem::path& path,
                                    const std::function<void(const std::filesystem::path&)>& fill);

/// Makes `path` what `change` makes of its content, or of nothing where there is no such file: for files that
/// are kept up to date. One process at a time, so that no change is lost. When something goes wrong, the old
/// file is there as it was.
void update_file(const std::filesystem::path& path,
                 const std::function<std::string(const std::optional<std::string>&)>& change);

/// Whether `path` is a file of this user with this content: no link, and no other user may write to it.
bool is_own_file(const std::filesystem::path& path, std::string_view content);

/// An open file, which is closed with the object.
class OpenFile {
 public:
  /// Takes the descriptor over; it may be -1.
  OpenFile(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile();

  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }

  /// Writes all of it.
  void write(std::string_view content) const;
  /// Waits until what was written is on the disk.
  void sync() const;

 private:
  int descriptor_;
  std::filesystem::path path_;
};

/// Creates an empty file `path`, or with .1, .2, … appended when there is something of that name, and opens
/// it for appending: for a journal, which others may see while it grows.
OpenFile create_open_file(const std::filesystem::path& path);

/// Gives the finished file `from` the name `path` in the same folder, or with .1, .2, … appended when there
/// is something of that name, and returns that name.
std::filesystem::path publish_file(const std::filesystem::path& from, const std::filesystem::path& path);

}  // namespace polyring
