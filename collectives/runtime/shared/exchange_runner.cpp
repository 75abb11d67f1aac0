#include "collectives/runtime/shared/exchange_runner.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/runtime/kernels.hpp"

namespace polyring {
namespace {

Location given_at(const Arrived& arrived) {
  Location location;
  std::memcpy(&location, arrived.data.data(), sizeof location);
  return location;
}

}  // namespace

/// What the partner fills or lands piece by piece, if it does.
PieceBlocks* ExchangeRunner::pieces(const SharedOperation& operation, std::size_t partner) const {
  const Exchange::Partner& role = operation.exchange.partners[partner];
  const Arrived& arrived = operation.offers[partner];
  if (arrived.from == kNobody) return nullptr;
  const bool reads = role.read && arrived.offer.gives_pieces;
  if (!reads && !(role.write && arrived.offer.takes_pieces)) return nullptr;
  return reinterpret_cast<PieceBlocks*>(
      memory_.at(arrived.from, reads ? given_at(arrived) : arrived.offer.take));
}

const std::byte* ExchangeRunner::given(const Arrived& arrived, Part part) const {
  if (arrived.offer.gives <= kInline) return arrived.data.data();
  std::byte* address = memory_.at(arrived.from, given_at(arrived));
  if (!arrived.offer.gives_pieces) return address + part.offset;
  return reinterpret_cast<PieceBlocks*>(address)->block(part.number, options_.piece.value);
}

std::byte* ExchangeRunner::taken(const Exchange& exchange, const Arrived& arrived, Part part) const {
  std::byte* address = memory_.at(arrived.from, arrived.offer.take);
  if (!arrived.offer.takes_pieces) return address + exchange.result_bytes(part.offset);
  return reinterpret_cast<PieceBlocks*>(address)->block(part.number, options_.piece.value);
}

/// Nothing while a partner has not filled it.
std::optional<ExchangeRunner::Part> ExchangeRunner::next_part(const SharedOperation& operation) const {
  const std::size_t all = operation.exchange.own.size();
  bool whole = true;
  for (std::size_t i = 0; i < operation.offers.size(); ++i) {
    const PieceBlocks* blocks = pieces(operation, i);
    if (blocks == nullptr) continue;
    whole = false;
    if (blocks->filled.load(std::memory_order_acquire) <= operation.part) return std::nullopt;
  }
  const std::size_t length = whole ? options_.part.value : options_.piece.value;
  const std::size_t offset = operation.part * length;
  return Part{offset, std::min(length, all - offset), operation.part};
}

bool ExchangeRunner::waits_for(const SharedOperation& operation, std::size_t partner) const {
  const PieceBlocks* blocks = operation.made ? nullptr : pieces(operation, partner);
  return blocks != nullptr && blocks->filled.load(std::memory_order_acquire) <= operation.part;
}

bool ExchangeRunner::run_next(SharedOperation& operation) {
  const std::optional<Part> part = next_part(operation);
  if (!part) return false;
  run(operation, *part);
  ++operation.part;
  operation.made = part->offset + part->bytes == operation.exchange.own.size();
  for (std::size_t i = 0; i < operation.offers.size(); ++i) {
    PieceBlocks* blocks = pieces(operation, i);
    if (blocks != nullptr) blocks->emptied.store(operation.part, std::memory_order_release);
  }
  return true;
}

void ExchangeRunner::run(const SharedOperation& operation, Part part) {
  const Exchange& exchange = operation.exchange;
  const auto& partners = exchange.partners;
  const bool reads = std::any_of(partners.begin(), partners.end(), [](const auto& p) { return p.read; });
  if (operation.kind == OfferKind::message) {
    if (reads && part.bytes > 0) {
      std::memcpy(exchange.result + part.offset, given(operation.offers.front(), part), part.bytes);
    }
  } else if (reads) {
    combine(operation, part);
  } else {
    hand_on(operation, part);
  }
}

void ExchangeRunner::combine(const SharedOperation& operation, Part part) {
  const Exchange& exchange = operation.exchange;
  inputs_.clear();
  outputs_.clear();
  far_.clear();
  bool own = false;
  // In place, what is written has just been read into the caches.
  const bool streaming = exchange.payload >= options_.streaming && exchange.result != exchange.own.data();
  for (std::size_t i = 0; i < exchange.partners.size(); ++i) {
    const Exchange::Partner& partner = exchange.partners[i];
    if (!own && partner.rank > rank_) {
      inputs_.push_back(exchange.own.data() + part.offset);
      own = true;
    }
    const Arrived& arrived = operation.offers[i];
    if (partner.read) inputs_.push_back(given(arrived, part));
    if (!partner.write) continue;
    (arrived.offer.takes_pieces ? outputs_ : far_).push_back(taken(exchange, arrived, part));
  }
  if (!own) inputs_.push_back(exchange.own.data() + part.offset);
  if (exchange.result != nullptr) far_.push_back(exchange.result + exchange.result_bytes(part.offset));
  // Pieces are to stay in the caches, whatever becomes of the rest.
  const bool both = streaming && !outputs_.empty();
  if (!both) outputs_.insert(outputs_.end(), far_.begin(), far_.end());
  const auto count = static_cast<Count>(part.bytes) / size_of(exchange.reduction.kind);
  combine_many(exchange.reduction, outputs_, inputs_, count,
               streaming && !both ? Stores::streaming : Stores::cached);
  if (!both) return;
  const std::size_t bytes = exchange.result_bytes(part.bytes);
  for (std::byte* output : far_) copy_on_host(output, outputs_.front(), bytes, Stores::streaming);
}

void ExchangeRunner::hand_on(const SharedOperation& operation, Part part) {
  const Exchange& exchange = operation.exchange;
  for (std::size_t i = 0; i < exchange.partners.size(); ++i) {
    if (!exchange.partners[i].write) continue;
    const Arrived& arrived = operation.offers[i];
    const bool streaming = exchange.payload >= options_.streaming && !arrived.offer.takes_pieces;
    copy_on_host(taken(exchange, arrived, part), exchange.own.data() + part.offset, part.bytes,
                 streaming ? Stores::streaming : Stores::cached);
  }
}

}  // namespace polyring
