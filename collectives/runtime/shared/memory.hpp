// SharedMemory: this rank's segments, entered on its control block, and the others' segments as they are met.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "collectives/runtime/shared/control_block.hpp"
#include "collectives/runtime/shared/replaced_pages.hpp"
#include "collectives/runtime/shared/segment.hpp"

namespace polyring {

/// Small blocks come many at a time from one segment, of at most so many bytes.
inline constexpr std::size_t kSlab = std::size_t{1} << 20;

class SharedMemory {
 public:
  /// `controls` are the control blocks of all ranks of the host, `own` is this one's place among them; both
  /// are kept.
  SharedMemory(std::span<ControlBlock* const> controls, std::size_t own);

  /// A new segment's memory for a user. Null when there is none, or the control block has only the places
  /// left that blocks may need.
  std::byte* add(std::size_t bytes);
  /// Takes one back; what others have mapped stays until they need its place on the control block.
  void remove(std::byte* address);
  /// A new segment in place of a program's own memory, which is whole private pages and keeps its contents.
  /// Throws Error(ExitCode::not_available) as Segment and ReplacedPages do, and where no place is left.
  void replace(std::span<std::byte> memory);
  /// Private pages again, also after keep(). Throws Error(ExitCode::not_available) where there is no memory
  /// for them, with all as before, and a usage Error where the program has taken the segment's away.
  void give_back_replaced(std::byte* begin);
  /// From now on nothing is taken back before the end: others may still use it.
  void keep() { keeps_ = true; }

  /// Where others find this memory of ours; generation 0 when it is not in a segment.
  Location locate(const std::byte* data, std::size_t bytes) const;
  /// Another rank's memory.
  std::byte* at(std::size_t rank, Location location);

  /// A block for what is not in a segment, at least so large, until it is given back. Throws
  /// Error(ExitCode::not_available) when there is no memory, or no place on the control block.
  std::byte* take_block(std::size_t bytes);
  /// The same, but null then.
  std::byte* try_block(std::size_t bytes);
  void give_back(std::byte* block);

 private:
  struct Own {
    Segment segment;
    std::uint32_t index;
    std::uint32_t generation;
    std::byte* begin;                         // where this rank uses it
    std::unique_ptr<ReplacedPages> replaces;  // null: it is where the system has put it
  };

  bool has_place() const;
  Own& enter(Segment segment);
  std::vector<Own>::iterator find(const std::byte* begin);
  void add_blocks(std::size_t size);

  struct Other {
    std::uint32_t generation = 0;
    std::vector<Mapping> mapping;  // one, or none yet
  };

  std::span<ControlBlock* const> controls_;
  std::size_t own_place_;
  std::vector<Own> own_;
  std::vector<std::uint32_t> free_records_;
  std::vector<std::vector<Other>> others_;                      // by rank and segment
  std::map<std::size_t, std::vector<std::byte*>> free_blocks_;  // by size
  std::map<std::byte*, std::size_t> blocks_;                    // their sizes
  std::map<std::size_t, std::size_t> slabs_;                    // bytes of them, by the size of their blocks
  bool keeps_ = false;
};

}  // namespace polyring
