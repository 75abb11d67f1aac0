// How a finished file gets its name without taking that of another: the ways that file systems offer.
#pragma once

#include <array>
#include <filesystem>

namespace polyring {

/// - rename: renameat2(2) with RENAME_NOREPLACE, which NFS and some others refuse;
/// - link: a second name by link(2), then the first one goes; FAT has no links;
/// - lock: a look and a plain rename, while the folder is locked for other processes of polyring.
enum class Naming { rename, link, lock };

/// In the order in which they are tried: the first two replace nothing whatever others do meanwhile.
inline constexpr std::array kNamings{Naming::rename, Naming::link, Naming::lock};

enum class Named { yes, taken, not_this_way, failed };

/// Gives the file `from` the name `to` in the same folder. `taken`: something has that name, be it a link to
/// nothing. `failed`: errno says why.
Named give_name(const std::filesystem::path& from, const std::filesystem::path& to, Naming way);

}  // namespace polyring
