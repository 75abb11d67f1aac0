// What this process has mapped at some addresses, as the system lists it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace polyring {

struct MappedRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string rights;  // "rw-p": to read, write and execute, and whether it is private or shared
  dev_t device = 0;
  ino_t inode = 0;   // of the file; 0: of none
  std::string name;  // of the file, or what the system calls it: "[heap]"
};

/// Those that have some of these bytes, by address. Throws Error(ExitCode::not_available) where the system
/// does not say.
std::vector<MappedRange> mapped_ranges(std::span<const std::byte> memory);

/// Whether there is something at each of the bytes. `ranges` are theirs.
bool is_covered(std::span<const std::byte> memory, std::span<const MappedRange> ranges);

/// Throws a usage Error unless these are whole pages of private memory, of no file, that can be read and
/// written.
void check_private_pages(std::span<const std::byte> memory);

}  // namespace polyring
