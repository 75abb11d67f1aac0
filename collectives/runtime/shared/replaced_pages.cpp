#include "collectives/runtime/shared/replaced_pages.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "collectives/runtime/shared/mapped.hpp"

namespace polyring {
namespace {

/// Null where there is no memory.
std::byte* private_pages(std::size_t bytes) {
  void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

/// Linux would give the memory, and end other processes, where there is none.
template <typename Look>
void copy(std::byte* to, std::span<const std::byte> from, Look&& look) {
  while (!from.empty()) {
    if (const auto little = look(from.size())) {
      throw Error(
          ExitCode::not_available,
          fmt::format("{} bytes of a buffer cannot be given back: {} has {} left; free other memory, and "
                      "deregister the buffer again",
                      from.size(), little->place, to_text(little->left)));
    }
    const std::size_t part = std::min(from.size(), kLooked);  // others take some meanwhile
    std::memcpy(to, from.data(), part);
    to += part;
    from = from.subspan(part);
  }
}

/// In one step for the other threads. False, with errno, where it is not done; then there may be nothing at
/// `to`.
bool move_pages(std::byte* from, std::span<std::byte> to) {
  return mremap(from, to.size(), to.size(), MREMAP_MAYMOVE | MREMAP_FIXED, to.data()) != MAP_FAILED;
}

bool map_shared(std::span<std::byte> memory, int descriptor) {
  return mmap(memory.data(), memory.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
              descriptor, 0) != MAP_FAILED;
}

/// The system may have taken the old pages away before it failed to map the new ones.
void restore(std::span<std::byte> memory, const Segment& segment) {
  if (is_covered(memory, mapped_ranges(memory))) return;
  std::byte* const made = private_pages(memory.size());
  if (made == nullptr) return;
  std::memcpy(made, segment.address(), memory.size());
  if (!move_pages(made, memory)) munmap(made, memory.size());
}

[[noreturn]] void fail(std::size_t bytes, const char* what, int error) {
  throw Error(
      ExitCode::not_available,
      fmt::format(
          "{} bytes of a buffer cannot be {}: {}; use smaller or fewer buffers, or raise the limit of "
          "memory (ulimit -v) or of mappings (vm.max_map_count)",
          bytes, what, strerror(error)));
}

}  // namespace

ReplacedPages::ReplacedPages(std::span<std::byte> memory, const Segment& segment)
    : memory_(memory), descriptor_(segment.name().descriptor) {
  assert(segment.bytes() == memory.size() && "a segment is as long as what it replaces");
  std::memcpy(segment.address(), memory.data(), memory.size());
  if (!map_shared(memory, descriptor_)) {
    const int error = errno;
    restore(memory, segment);
    fail(memory.size(), "registered", error);
  }
  // The pages themselves stay; at their other address only threads of this process use them, if any.
  madvise(segment.address(), memory.size(), MADV_DONTNEED);
}

ReplacedPages::~ReplacedPages() {
  try {
    give_back();
  } catch (const std::exception&) {
    // They stay as they are.
  }
}

bool ReplacedPages::give_back(bool others_read, std::optional<LittleRoom> (*look)(std::size_t)) {
  if (memory_.empty()) return true;
  if (!are_there()) {
    memory_ = {};
    return false;
  }
  std::byte* const made = private_pages(memory_.size());
  if (made == nullptr) fail(memory_.size(), "given back", errno);
  try {
    copy(made, memory_, look);
  } catch (...) {
    munmap(made, memory_.size());
    throw;
  }
  if (!move_pages(made, memory_)) {
    const int error = errno;
    munmap(made, memory_.size());
    map_shared(memory_, descriptor_);
    fail(memory_.size(), "given back", error);
  }
  // Others that have mapped the segment hold nothing but zeros from now on, which take no memory.
  if (!others_read)
    fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(memory_.size()));
  memory_ = {};
  return true;
}

bool ReplacedPages::are_there() const {
  struct stat file {};
  if (fstat(descriptor_, &file) != 0) return false;
  const std::vector<MappedRange> ranges = mapped_ranges(memory_);
  return is_covered(memory_, ranges) && std::ranges::all_of(ranges, [&](const MappedRange& range) {
           return range.inode == file.st_ino && range.device == file.st_dev;
         });
}

}  // namespace polyring
