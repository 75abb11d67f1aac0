// ReplacedPages: pages of a program's own memory, in whose place a segment's are mapped for some time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "collectives/runtime/shared/room.hpp"
#include "collectives/runtime/shared/segment.hpp"

namespace polyring {

class ReplacedPages {
 public:
  /// Copies `memory`, whole private pages, to the segment, which is as long and lives longer than this, and
  /// maps the segment there as well. Where that fails, throws Error(ExitCode::not_available), and the memory
  /// is as before. Nobody else uses it meanwhile.
  ReplacedPages(std::span<std::byte> memory, const Segment& segment);
  /// Gives them back. Where that fails, the segment's pages stay there.
  ~ReplacedPages();
  ReplacedPages(const ReplacedPages&) = delete;
  ReplacedPages& operator=(const ReplacedPages&) = delete;

  /// Puts private pages with the same contents there again; what others write to the segment from then on
  /// does not reach them, and the segment's memory is free unless `others_read` it. Throws
  /// Error(ExitCode::not_available) where there is no memory for them: all is as before then. False, and
  /// nothing done, where the program itself has mapped something else there.
  bool give_back(bool others_read = false, std::optional<LittleRoom> (*look)(std::size_t) = too_little_room);

 private:
  bool are_there() const;

  std::span<std::byte> memory_;  // none: they were given back
  int descriptor_;               // of the segment
};

}  // namespace polyring
