// SharedOperation: what a rank has in flight in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/runtime/shared/control_block.hpp"
#include "collectives/runtime/shared/pieces.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring {

inline constexpr std::size_t kNobody = ~std::size_t{0};

/// An offer that has come: a copy of it, as the entry is soon another's.
struct Arrived {
  Offer offer;
  std::size_t from = kNobody;  // the rank's place among those of the host
  InlineData data;
};

/// Something to be copied out of a block when all is done.
struct Landing {
  std::byte* block;
  std::span<std::byte> to;
};

/// A send, a receive or an exchange. Used again and again, for the vectors' sake.
struct SharedOperation {
  Ticket ticket = 0;
  OfferKind kind = OfferKind::message;
  Exchange exchange;                 // of a message: one partner; what is received goes to `result`
  std::vector<Arrived> offers;       // of the partners, as they come
  std::size_t missing = 0;           // offers that are still awaited
  std::uint32_t part = 0;            // the next that this rank reads or writes
  bool made = false;                 // this rank's part is done
  std::vector<std::uint32_t> slots;  // of the offers to each partner
  bool waits = false;                // until those are finished, because what they give is not a copy
  std::uint32_t progress = 0;        // of the partners with those, all together, when last looked at
  std::vector<PieceOwner> owned;     // what partners reach piece by piece
  std::vector<std::byte*> blocks;
  std::size_t block_bytes = 0;
  std::vector<std::vector<std::byte>> copies;  // in no segment; partners get pieces of them
  std::vector<Landing> landings;
};

}  // namespace polyring
