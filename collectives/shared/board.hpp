// Board: what one rank shows the others of its host, in a segment of its own.
//
//   records    its segments, so that others can map what an offer points into
//   finished   for each of its offers, whether the rank it was made to has finished with it; for more offers
//              than usual, in blocks beside the board
//   inboxes    one ring of offers for each other rank, written by that rank alone
//
// All of it works between processes that map it at different addresses, and between threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collectives/shared/segment.hpp"

namespace polyring {

inline constexpr std::size_t kLine = 64;
inline constexpr std::size_t kMostSegments = 512;
inline constexpr std::size_t kOffersInBlock = 4096;
inline constexpr std::size_t kMostOfferBlocks = 256;

/// A place in one of a rank's segments.
struct Location {
  std::uint64_t offset = 0;
  std::uint32_t segment = 0;
  std::uint32_t generation = 0;  // of the segment's record; 0: there is no such place
};

enum class OfferKind : std::uint32_t { message, meeting };

/// What a rank lets another do with its memory.
struct Offer {
  std::uint32_t slot = 0;  // where to note that it is finished
  std::int32_t tag = 0;
  OfferKind kind = OfferKind::message;
  bool gives_pieces = false;  // its Location, or that of `take`, is of PieceBlocks
  bool takes_pieces = false;
  std::uint64_t gives = 0;  // bytes, to be read
  Location take;            // to be written
};

/// What is given, where it fits; else its Location.
inline constexpr std::size_t kInline = 80;
using InlineData = std::array<std::byte, kInline>;

/// An offer in an inbox. The sequence is written last, and makes it valid. The smallest payloads lie in the
/// same line as the sequence: one line is all that travels from core to core.
struct alignas(kLine) Entry {
  std::atomic<std::uint32_t> sequence{0};
  Offer offer;
  InlineData data{};
};
static_assert(sizeof(Entry) == 2 * kLine);

struct Inbox {
  static constexpr std::uint32_t kEntries = 256;
  std::array<Entry, kEntries> entries;
  alignas(kLine) std::atomic<std::uint32_t> read{0};  // entries that the reader is done with
};

struct SegmentRecord {
  std::atomic<std::uint32_t> generation{0};  // 0: never used
  SegmentName name;
};

/// A word each: ranks that finish at once rarely meet in a cache line.
using FinishedBlock = std::array<std::atomic<std::uint32_t>, kOffersInBlock>;

struct Board {
  std::uint64_t token = 0;  // told to the others by other means: they have mapped the right memory
  std::array<SegmentRecord, kMostSegments> records;
  std::array<Location, kMostOfferBlocks> more_finished;  // from the second block on
  alignas(kLine) FinishedBlock finished;
  // inboxes follow, by the writer's place among the ranks of the host

  static std::size_t bytes(std::size_t ranks) { return inboxes_at() + ranks * sizeof(Inbox); }
  Inbox& inbox(std::size_t writer) {
    return reinterpret_cast<Inbox*>(reinterpret_cast<std::byte*>(this) + inboxes_at())[writer];
  }

 private:
  static std::size_t inboxes_at() { return (sizeof(Board) + kLine - 1) / kLine * kLine; }
};

}  // namespace polyring
