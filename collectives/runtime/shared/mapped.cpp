#include "collectives/runtime/shared/mapped.hpp"

#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>

#include "base/error.hpp"

namespace polyring {
namespace {

constexpr const char* kMaps = "/proc/self/maps";

/// "7f1c-7f1e rw-p 00000000 00:01 4711    /memfd:polyring (deleted)"
std::optional<MappedRange> parsed(const std::string& line) {
  MappedRange range;
  char rights[5] = {};
  unsigned major = 0;
  unsigned minor = 0;
  int name = 0;
  const int got = std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %*x %x:%x %lu %n", &range.begin,
                              &range.end, rights, &major, &minor, &range.inode, &name);
  if (got != 6) return std::nullopt;
  range.rights = rights;
  range.device = makedev(major, minor);
  range.name = line.substr(static_cast<std::size_t>(name));
  return range;
}

std::uintptr_t address_of(std::span<const std::byte> memory) {
  return reinterpret_cast<std::uintptr_t>(memory.data());
}

/// What a program allocates. Of the others the system keeps some, such as the stack that grows.
bool is_ordinary(const std::string& name) {
  return name.empty() || name == "[heap]" || name.starts_with("[anon:");
}

}  // namespace

std::vector<MappedRange> mapped_ranges(std::span<const std::byte> memory) {
  const std::uintptr_t begin = address_of(memory);
  const std::uintptr_t end = begin + memory.size();
  std::ifstream file(kMaps);
  std::vector<MappedRange> ranges;
  std::string line;
  bool any = false;
  while (std::getline(file, line)) {
    std::optional<MappedRange> range = parsed(line);
    any = any || range;
    if (!range || range->end <= begin) continue;
    if (range->begin >= end) break;
    ranges.push_back(std::move(*range));
  }
  if (!any)
    throw Error(
        ExitCode::not_available,
        fmt::format("the system does not say what memory this process has; see whether {} can be read",
                    kMaps));
  return ranges;
}

bool is_covered(std::span<const std::byte> memory, std::span<const MappedRange> ranges) {
  std::uintptr_t next = address_of(memory);
  for (const MappedRange& range : ranges) {
    if (range.begin > next) return false;
    next = range.end;
  }
  return next >= address_of(memory) + memory.size();
}

void check_private_pages(std::span<const std::byte> memory) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = address_of(memory);
  if (memory.empty() || begin % page != 0 || memory.size() % page != 0) {
    usage_error(
        "the {} bytes of the buffer at {:#x} are not whole pages of {} bytes, and others may use the rest; "
        "allocate "
        "whole pages, as by aligned_alloc({}, bytes)",
        memory.size(), begin, page, page);
  }
  const bool wraps = memory.size() > std::numeric_limits<std::uintptr_t>::max() - begin;
  const std::vector<MappedRange> ranges = wraps ? std::vector<MappedRange>() : mapped_ranges(memory);
  if (wraps || !is_covered(memory, ranges)) {
    usage_error("the {} bytes of the buffer at {:#x} are not all memory of this process; see its length",
                memory.size(), begin);
  }
  for (const MappedRange& range : ranges) {
    if (range.rights == "rw-p" && range.inode == 0 && is_ordinary(range.name)) continue;
    usage_error(
        "the buffer at {:#x} has pages that are not a program's private memory to be read and written "
        "(rights {}{}{}): "
        "copy it to memory of aligned_alloc() or mmap()",
        begin, range.rights, range.name.empty() ? "" : ", ", range.name);
  }
}

}  // namespace polyring
