// Renames a finished file without replacing another one, in one of the ways that file systems offer.
#pragma once

#include <array>
#include <filesystem>

namespace polyring {

/// - rename: renameat2(2) with RENAME_NOREPLACE; NFS and some others refuse it;
/// - link: link(2) to the new name, then unlink the old one; FAT has no links;
/// - lock: lock the folder against other polyring processes, check the name, rename.
enum class Naming { rename, link, lock };

/// In the order in which they are tried. The first two never replace a file, whatever other programs do.
inline constexpr std::array kNamings{Naming::rename, Naming::link, Naming::lock};

enum class Named { yes, taken, not_this_way, failed };

/// Renames `from` to `to` in the same folder. `taken`: the name exists, even if only as a dangling link.
/// `not_this_way`: the file system does not support it. `failed`: errno says why.
Named give_name(const std::filesystem::path& from, const std::filesystem::path& to, Naming way);

}  // namespace polyring
