// ControlBlock: what one rank shows the others of its host, in a segment of its own.
//
//   records    its segments, so that others can map what an offer points into
//   finished   for each of its offers, whether the rank it was made to has finished with it; for more offers
//              than usual, in blocks beside the control block
//   writers    who has ever offered something to this rank
//   inboxes    one ring of offers for each other rank, written by that rank alone
//
// The memory of an inbox is its writer's to fill, as far as it needs it: ranks that exchange nothing cost
// nothing.
//
// All of it works between processes that map it at different addresses, and between threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collectives/runtime/shared/segment.hpp"

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

enum class OfferKind : std::uint32_t { message, exchange };

/// What a rank lets another do with its memory.
struct Offer {
  std::uint32_t slot = 0;  // where to note that it is finished
  std::int32_t tag = 0;
  OfferKind kind = OfferKind::message;
  bool gives_pieces = false;  // its Location, or that of `take`, is of PieceBlocks
  bool takes_pieces = false;
  std::uint16_t takes = 0;  // bytes, to be written: what folded_bytes() makes of them
  std::uint64_t gives = 0;  // bytes, to be read
  Location take;            // to be written
};

/// The same for equal numbers of bytes, hardly ever for others, and 0 for none alone.
constexpr std::uint16_t folded_bytes(std::uint64_t bytes) {
  const std::uint64_t folded = (bytes ^ bytes >> 16 ^ bytes >> 32 ^ bytes >> 48) & 0xffff;
  return static_cast<std::uint16_t>(bytes > 0 && folded == 0 ? 1 : folded);
}

/// What is given, where it fits; else its Location.
inline constexpr std::size_t kInline = 80;
using InlineData = std::array<std::byte, kInline>;

/// An offer in an inbox. The sequence is written last, and makes it valid. The smallest payloads lie in the
/// same line as the sequence: one line is all that travels from core to core.
struct alignas(kLine) Entry {
  std::atomic<std::uint32_t> sequence{0};
  std::uint32_t next = 0;  // the entry that the next offer will be in
  Offer offer;
  InlineData data{};
};
static_assert(sizeof(Entry) == 2 * kLine);

/// The entries form a ring, of as many as were ever unread at once.
struct alignas(2 * kLine) Inbox {
  static constexpr std::uint32_t kEntries = 255;

  std::atomic<std::uint32_t> read{0};  // entries that the reader is done with
  std::array<Entry, kEntries> entries;

  /// Where an entry begins, in bytes of the inbox.
  static constexpr std::size_t at(std::uint32_t entry) { return 2 * kLine + entry * sizeof(Entry); }
};
static_assert(sizeof(Inbox) % kPage == 0 && kPage % sizeof(Entry) == 0);

struct SegmentRecord {
  std::atomic<std::uint32_t> generation{0};  // 0: never used
  SegmentName name;
};

/// A word each: ranks that finish at once rarely meet in a cache line.
using FinishedBlock = std::array<std::atomic<std::uint32_t>, kOffersInBlock>;

struct ControlBlock {
  std::atomic<bool> given_up{false};
  std::uint64_t token = 0;  // told to the others by other means: they have mapped the right memory
  std::array<SegmentRecord, kMostSegments> records;
  std::array<Location, kMostOfferBlocks> more_finished;  // from the second block on
  alignas(kLine) FinishedBlock finished;
  // the writers follow, a bit each, and the inboxes, by the writer's place among the ranks of the host

  using Word = std::atomic<std::uint64_t>;
  static constexpr std::size_t kWordBits = 64;

  static std::size_t words(std::size_t ranks) { return (ranks + kWordBits - 1) / kWordBits; }
  Word& writers(std::size_t word) { return reinterpret_cast<Word*>(this + 1)[word]; }

  /// Without the inboxes, and with them.
  static std::size_t inboxes_at(std::size_t ranks) {
    return (sizeof(ControlBlock) + words(ranks) * sizeof(Word) + kPage - 1) / kPage * kPage;
  }
  static std::size_t bytes(std::size_t ranks) { return inboxes_at(ranks) + ranks * sizeof(Inbox); }
  std::byte* inbox(std::size_t writer, std::size_t ranks) {
    return reinterpret_cast<std::byte*>(this) + inboxes_at(ranks) + writer * sizeof(Inbox);
  }
};

}  // namespace polyring
