// Writes files that appear whole or not at all, and that replace no other file unless the caller wants that.
//
// A file is first written beside its final place, under a random name. It gets its final name when all of it
// is on the disk. So even a kill leaves no empty or half-written file under the final name. Links are not
// followed. The umask decides the modes.
//
// Errors: a path that cannot be right is a usage Error. A failure while writing, such as a full disk or a
// removed folder, is an Error(ExitCode::output).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace polyring {

/// Reads a whole file. Throws a usage Error when it is missing, cannot be read, or is larger than 1 GiB.
std::string read_file(const std::filesystem::path& path);

/// Reads a whole text file. Throws a usage Error when it is missing, not a regular file, unreadable, empty,
/// or larger than 64 MiB; no topology is as large as that. A byte order mark is left out.
std::string read_text_file(const std::filesystem::path& path);

/// Writes a file that no other process writes at the same time, such as one in a folder from create_folder().
void write_file(const std::filesystem::path& path, std::string_view content);

/// Writes `content` to a new file `path` and returns its path. If the name is taken, appends .1, .2, ….
std::filesystem::path create_file(const std::filesystem::path& path, std::string_view content);

/// The same for a folder; `fill` gets its temporary path and fills it. Creates the folders above it. Uses an
/// empty folder `path` if there is one. When `fill` throws, nothing stays behind.
std::filesystem::path create_folder(const std::filesystem::path& path,
                                    const std::function<void(const std::filesystem::path&)>& fill);

/// Replaces the content of `path` by what `change` returns for the old content (nothing: there was no file).
/// A lock lets one process at a time do this, so no change is lost. On failure the old file stays as it was.
void update_file(const std::filesystem::path& path,
                 const std::function<std::string(const std::optional<std::string>&)>& change);

/// Whether `path` is a regular file (no link) with this content that this user owns and no other user may
/// write to.
bool is_own_file(const std::filesystem::path& path, std::string_view content);

/// An open file. The destructor closes it.
class OpenFile {
 public:
  /// Takes ownership of the descriptor, which may be -1.
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

/// Creates an empty file and opens it for appending. If the name is taken, appends .1, .2, …. For a journal:
/// others may read it while it grows.
OpenFile create_open_file(const std::filesystem::path& path);

/// Opens one again whose process has died: what that had written of a last line is cut off. Throws a usage
/// Error where there is no such file.
OpenFile reopen_file_of_lines(const std::filesystem::path& path);

/// Renames the finished file `from` to `path` in the same folder and returns the new name. If the name is
/// taken, appends .1, .2, ….
std::filesystem::path publish_file(const std::filesystem::path& from, const std::filesystem::path& path);

}  // namespace polyring
