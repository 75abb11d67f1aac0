#include "collectives/runtime/transports/shared.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/runtime/backoff.hpp"
#include "collectives/runtime/cause.hpp"
#include "collectives/runtime/shared/control_blocks.hpp"
#include "collectives/runtime/shared/exchange_runner.hpp"
#include "collectives/runtime/shared/memory.hpp"
#include "collectives/runtime/shared/offered_buffers.hpp"
#include "collectives/runtime/shared/operation.hpp"
#include "collectives/runtime/shared/outbox.hpp"
#include "collectives/runtime/shared/slots.hpp"

namespace polyring {
namespace {

class SharedTransport final : public PollingTransport {
 public:
  SharedTransport(const Bootstrap& bootstrap, std::vector<Rank> members,
                  std::unique_ptr<ControlBlocks> controls, WaitRules rules, SharedOptions options);
  ~SharedTransport() override;
  SharedTransport(const SharedTransport&) = delete;
  SharedTransport& operator=(const SharedTransport&) = delete;

  Rank rank() const override { return rank_; }
  int size() const override { return static_cast<int>(place_.size()); }
  bool reaches(Rank peer) const override { return peer != rank_ && place_[index(peer)] != kNobody; }

  Memory allocate(Bytes size) override;
  Memory scratch(Bytes size) override { return HostTransport::allocate(size); }
  void register_memory(std::span<std::byte> memory) override { memory_->replace(memory); }
  void deregister_memory(std::byte* begin) override { memory_->give_back_replaced(begin); }
  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override;
  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override;
  void exchange(const Exchange& exchange, Ticket ticket) override;
  bool poll(std::vector<Ticket>& done) override;
  std::vector<Rank> awaited() const override;

 protected:
  void stop() override;

 private:
  // Copies, and their bytes, before it is worth a look which of them are free again. More bytes would not be
  // in the core's cache any more when they are used again.
  static constexpr std::size_t kKept = 32;
  static constexpr std::size_t kKeptBytes = std::size_t{64} << 10;

  // Polls in vain, before a look whether others have given up.
  static constexpr std::uint32_t kLook = 1024;

  ControlBlock& own_control() { return *controls_->all[own_place_]; }
  std::size_t place(Rank rank) const { return place_[index(rank)]; }

  SharedOperation& begin(OfferKind kind, int tag, Ticket ticket);
  void make_offers(SharedOperation& operation);
  void post(std::size_t to, const Offer& offer, std::span<const std::byte> data);
  void await_offers(SharedOperation& operation);
  void check(const SharedOperation& operation, std::size_t partner, const Offer& offer) const;
  void check_others();
  bool has_given_up(std::size_t member) const {
    return controls_->all[member]->given_up.load(std::memory_order_acquire);
  }
  [[noreturn]] static void miss(Rank rank);

  void listen();
  void drain(std::size_t from);
  bool accept(const Arrived& arrived);
  bool advance(SharedOperation& operation);
  bool complete(SharedOperation& operation);
  bool notices_progress(SharedOperation& operation) const;
  void reuse(SharedOperation& operation);
  void reuse_retired();

  std::uint32_t take_slot();
  bool finished(const SharedOperation& operation) const {
    return std::all_of(operation.slots.begin(), operation.slots.end(),
                       [&](std::uint32_t slot) { return slots_->finished(slot); });
  }

  Rank rank_;
  std::vector<Rank> members_;
  SharedOptions options_;
  std::unique_ptr<ControlBlocks> controls_;
  std::size_t own_place_;
  std::vector<std::size_t> place_;  // of each rank among the members
  std::shared_ptr<SharedMemory> memory_;
  std::optional<Slots> slots_;
  std::optional<OfferedBuffers> buffers_;
  std::optional<ExchangeRunner> runner_;
  std::vector<Outbox> outboxes_;  // to each member

  /// How far a member's entries to us have been read.
  struct Reading {
    std::uint32_t entry = 0;
    std::uint32_t offers = 0;
  };
  std::vector<Reading> readings_;
  std::vector<std::size_t> heard_;      // those who have ever written something
  std::vector<std::uint64_t> writers_;  // the same, as on the control block

  std::deque<SharedOperation> operations_;
  std::vector<SharedOperation*> in_flight_;
  std::vector<SharedOperation*> spare_;
  std::vector<std::deque<Arrived>> early_;  // offers that came before we were ready for them
  std::vector<SharedOperation*> retiring_;  // done, but their copies must stay until they have been read
  std::uint32_t idle_polls_ = 0;            // since something last happened
  std::size_t retiring_bytes_ = 0;          // of those copies
  std::size_t next_look_ = kKept;           // at those, when they are so many, or …
  std::size_t next_look_bytes_ = kKeptBytes;
};

SharedTransport::SharedTransport(const Bootstrap& bootstrap, std::vector<Rank> members,
                                 std::unique_ptr<ControlBlocks> controls, WaitRules rules,
                                 SharedOptions options)
    : PollingTransport(std::move(rules)),
      rank_(bootstrap.rank()),
      members_(std::move(members)),
      options_(options),
      controls_(std::move(controls)),
      place_(index(bootstrap.size()), kNobody),
      readings_(members_.size()),
      writers_(ControlBlock::words(members_.size())),
      early_(members_.size()) {
  for (std::size_t place = 0; place < members_.size(); ++place) {
    place_[index(members_[place])] = place;
  }
  own_place_ = place_[index(rank_)];
  for (const Mapping& mapping : controls_->mappings) {
    outboxes_.emplace_back(mapping, own_place_, members_.size());
  }
  memory_ = std::make_shared<SharedMemory>(controls_->all, own_place_);
  slots_.emplace(controls_->all, own_place_, *memory_);
  buffers_.emplace(*memory_, options);
  runner_.emplace(rank_, *memory_, options);
}

SharedTransport::~SharedTransport() {
  // Others may still have to read the copies that nobody waits for, unless the job is breaking off.
  Backoff backoff(rules().timeout, rules().yields);
  while (!retiring_.empty() && std::uncaught_exceptions() == 0 && backoff.again()) reuse_retired();
}

/// What others still read and write stays as long as this rank's memory: they have mapped it themselves.
void SharedTransport::stop() {
  own_control().given_up.store(true, std::memory_order_release);
  memory_->keep();
  in_flight_.clear();
  retiring_.clear();
  for (std::deque<Arrived>& early : early_) early.clear();
}

Memory SharedTransport::allocate(Bytes size) {
  // What is small is copied anyhow.
  std::byte* address = size.value > kEagerExchange ? memory_->add(size.value) : nullptr;
  if (address == nullptr) return HostTransport::allocate(size);
  return {address, [memory = memory_](std::byte* memory_of_user) { memory->remove(memory_of_user); }};
}

SharedOperation& SharedTransport::begin(OfferKind kind, int tag, Ticket ticket) {
  if (spare_.empty()) spare_.push_back(&operations_.emplace_back());
  SharedOperation& operation = *spare_.back();
  spare_.pop_back();
  in_flight_.push_back(&operation);
  operation.ticket = ticket;
  operation.kind = kind;
  operation.exchange.tag = tag;
  operation.exchange.reduction = {};
  operation.made = false;
  operation.slots.clear();
  operation.waits = false;
  operation.owned.clear();
  operation.part = 0;
  operation.progress = 0;
  return operation;
}

void SharedTransport::send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) {
  SharedOperation& operation = begin(OfferKind::message, tag, ticket);
  operation.exchange.partners.assign(1, {to, data, {}, false, false});
  operation.exchange.own = {};
  operation.exchange.result = nullptr;
  make_offers(operation);
  await_offers(operation);
}

void SharedTransport::receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) {
  SharedOperation& operation = begin(OfferKind::message, tag, ticket);
  operation.exchange.partners.assign(1, {from, {}, {}, true, false});
  operation.exchange.own = data;
  operation.exchange.result = data.data();
  await_offers(operation);
}

void SharedTransport::exchange(const Exchange& exchange, Ticket ticket) {
  SharedOperation& operation = begin(OfferKind::exchange, exchange.tag, ticket);
  operation.exchange = exchange;
  make_offers(operation);
  await_offers(operation);
}

/// Tells every partner what it may read and write. An empty message is told, too.
void SharedTransport::make_offers(SharedOperation& operation) {
  const Exchange& exchange = operation.exchange;
  OfferedBuffers::Given given;  // to the partner before: often all are given the same
  operation.slots.assign(exchange.partners.size(), kNoSlot);
  for (std::size_t i = 0; i < exchange.partners.size(); ++i) {
    const Exchange::Partner& partner = exchange.partners[i];
    const bool message = operation.kind == OfferKind::message;
    if (partner.gives.empty() && partner.takes.empty() && !message) continue;
    Offer offer{kNoSlot,
                exchange.tag,
                operation.kind,
                false,
                false,
                folded_bytes(partner.takes.size()),
                partner.gives.size(),
                {}};
    const bool inlined = partner.gives.size() <= kInline;
    offer.gives_pieces = buffers_->gives_pieces(exchange, i);
    offer.takes_pieces = buffers_->takes_pieces(exchange, i);
    std::span<const std::byte> pieces_of = partner.gives;
    if (!inlined && !offer.gives_pieces) {
      if (partner.gives.data() != given.data.data() || partner.gives.size() != given.data.size())
        given = buffers_->give(operation, partner.gives);
      offer.gives_pieces = given.location.generation == 0;
      pieces_of = given.pieces_of;
    }
    Location through;
    if (offer.gives_pieces || offer.takes_pieces) {
      through = buffers_->own_pieces(operation, offer.gives_pieces ? pieces_of : std::span<const std::byte>(),
                                     offer.takes_pieces ? partner.takes : std::span<std::byte>());
    }
    if (!partner.takes.empty())
      offer.take = offer.takes_pieces ? through : buffers_->take(operation, partner.takes);
    if (!inlined || !partner.takes.empty()) offer.slot = operation.slots[i] = take_slot();
    const Location& at = offer.gives_pieces ? through : given.location;
    post(place(partner.rank), offer, inlined ? partner.gives : std::as_bytes(std::span(&at, 1)));
  }
}

void SharedTransport::post(std::size_t to, const Offer& offer, std::span<const std::byte> data) {
  Backoff backoff(rules().timeout, rules().yields);
  while (!outboxes_[to].write(offer, data)) {
    // The other may itself be waiting for room in our inbox.
    listen();
    if (has_given_up(to)) miss(members_[to]);
    if (rules().idle) rules().idle();
    if (!backoff.again()) rules().give_up("room for messages", {members_[to]});
  }
}

/// Finds out whose offers the operation needs, and takes those that have come already.
void SharedTransport::await_offers(SharedOperation& operation) {
  const auto& partners = operation.exchange.partners;
  operation.offers.resize(partners.size());
  operation.missing = 0;
  for (std::size_t i = 0; i < partners.size(); ++i) {
    operation.offers[i].from = kNobody;
    if (!partners[i].read && !partners[i].write) continue;
    std::deque<Arrived>& early = early_[place(partners[i].rank)];
    const auto at = std::find_if(early.begin(), early.end(), [&](const Arrived& arrived) {
      return arrived.offer.kind == operation.kind && arrived.offer.tag == operation.exchange.tag;
    });
    if (at == early.end()) {
      ++operation.missing;
      continue;
    }
    check(operation, i, at->offer);
    operation.offers[i] = *at;
    early.erase(at);
  }
}

/// Throws where the partner does something else than this rank: nothing must be read or written there.
void SharedTransport::check(const SharedOperation& operation, std::size_t partner, const Offer& offer) const {
  const Exchange& exchange = operation.exchange;
  const Exchange::Partner& role = exchange.partners[partner];
  check_length(role.rank, role.read ? exchange.own.size() : 0, offer.gives);
  const std::size_t written = role.write ? exchange.result_bytes(exchange.own.size()) : 0;
  if (offer.takes != folded_bytes(written)) fail_by_mismatch(role.rank);
}

/// Throws where somebody whom this rank waits for has given up.
void SharedTransport::check_others() {
  std::vector<std::size_t> gone;
  for (std::size_t member = 0; member < members_.size(); ++member)
    if (has_given_up(member)) gone.push_back(member);
  if (gone.empty()) return;
  listen();  // what they have offered before
  for (const Rank rank : awaited())
    if (std::ranges::find(gone, place(rank)) != gone.end()) miss(rank);
}

void SharedTransport::miss(Rank rank) {
  let_the_cause_be_said();
  throw Error(ExitCode::mpi, fmt::format("rank {} has given up; see what it said", rank));
}

/// Takes what others have offered.
void SharedTransport::listen() {
  for (std::size_t word = 0; word < writers_.size(); ++word) {
    const std::uint64_t all = own_control().writers(word).load(std::memory_order_acquire);
    for (std::uint64_t fresh = all & ~writers_[word]; fresh != 0; fresh &= fresh - 1) {
      heard_.push_back(word * ControlBlock::kWordBits + static_cast<std::size_t>(std::countr_zero(fresh)));
    }
    writers_[word] = all;
  }
  for (const std::size_t from : heard_) drain(from);
}

void SharedTransport::drain(std::size_t from) {
  auto& inbox = *reinterpret_cast<Inbox*>(own_control().inbox(from, members_.size()));
  Reading& reading = readings_[from];
  for (;;) {
    Entry& entry = inbox.entries[reading.entry];
    if (entry.sequence.load(std::memory_order_acquire) != reading.offers + 1) return;
    Arrived arrived;  // whose data stays as it is beyond what is given
    arrived.offer = entry.offer;
    arrived.from = from;
    const bool inlined = arrived.offer.gives <= kInline;
    std::memcpy(arrived.data.data(), entry.data.data(), inlined ? arrived.offer.gives : sizeof(Location));
    reading.entry = entry.next;
    // The writer looks at this only when it has no free entry.
    inbox.read.store(++reading.offers, std::memory_order_release);
    if (!accept(arrived)) early_[from].push_back(arrived);
  }
}

/// Gives the offer to the oldest operation that awaits it.
bool SharedTransport::accept(const Arrived& arrived) {
  for (SharedOperation* operation : in_flight_) {
    if (operation->missing == 0 || operation->kind != arrived.offer.kind ||
        operation->exchange.tag != arrived.offer.tag) {
      continue;
    }
    const auto& partners = operation->exchange.partners;
    for (std::size_t i = 0; i < partners.size(); ++i) {
      if (place(partners[i].rank) != arrived.from || operation->offers[i].from != kNobody) continue;
      if (!partners[i].read && !partners[i].write) continue;
      check(*operation, i, arrived.offer);
      operation->offers[i] = arrived;
      --operation->missing;
      return true;
    }
  }
  return false;
}

/// Goes on with one part of an operation; false when there is nothing to do before others have gone on.
bool SharedTransport::advance(SharedOperation& operation) {
  bool any = false;
  for (PieceOwner& owner : operation.owned) any = owner.advance() || any;
  if (operation.made || operation.missing > 0 || !runner_->run_next(operation)) return any;
  for (const Arrived& arrived : operation.offers) {
    if (arrived.from == kNobody) continue;
    if (operation.made) {
      slots_->finish(arrived.from, arrived.offer.slot);
    } else {
      slots_->note_progress(arrived.from, arrived.offer.slot, operation.part);
    }
  }
  return true;
}

/// Whether all is done, by the others as well. Then at most copies are left of the operation.
bool SharedTransport::complete(SharedOperation& operation) {
  const bool unread = !finished(operation);
  if (operation.waits && unread) return false;
  if (!std::ranges::all_of(operation.owned, &PieceOwner::done)) return false;
  for (const Landing& landing : operation.landings) {
    std::memcpy(landing.to.data(), landing.block, landing.to.size());
  }
  operation.landings.clear();
  if (unread) {
    retiring_.push_back(&operation);
    retiring_bytes_ += operation.block_bytes;
  } else {
    reuse(operation);
  }
  return true;
}

/// Whether a partner has come nearer to its end since the last look.
bool SharedTransport::notices_progress(SharedOperation& operation) const {
  std::uint32_t progress = 0;
  for (const std::uint32_t slot : operation.slots) progress += slots_->progress(slot);
  return std::exchange(operation.progress, progress) != progress;
}

void SharedTransport::reuse(SharedOperation& operation) {
  for (std::byte* block : operation.blocks) memory_->give_back(block);
  operation.blocks.clear();
  operation.block_bytes = 0;
  operation.copies.clear();
  for (const std::uint32_t slot : operation.slots) slots_->give_back(slot);
  spare_.push_back(&operation);
}

void SharedTransport::reuse_retired() {
  std::erase_if(retiring_, [&](SharedOperation* operation) {
    if (!finished(*operation)) return false;
    retiring_bytes_ -= operation->block_bytes;
    reuse(*operation);
    return true;
  });
}

bool SharedTransport::poll(std::vector<Ticket>& done) {
  bool progress = take_local(done);
  listen();
  for (SharedOperation*& operation : in_flight_) {
    progress = advance(*operation) || progress;
    if (!operation->made) continue;
    const Ticket ticket = operation->ticket;
    if (!complete(*operation)) {
      progress = notices_progress(*operation) || progress;
      continue;
    }
    done.push_back(ticket);
    operation = nullptr;
    progress = true;
  }
  std::erase(in_flight_, nullptr);
  if (progress) {
    idle_polls_ = 0;
  } else if (++idle_polls_ % kLook == 0) {
    check_others();
  }
  return progress;
}

std::vector<Rank> SharedTransport::awaited() const {
  std::vector<Rank> ranks;
  for (const SharedOperation* operation : in_flight_) {
    for (std::size_t i = 0; i < operation->exchange.partners.size(); ++i) {
      const Exchange::Partner& partner = operation->exchange.partners[i];
      const bool silent = (partner.read || partner.write) && operation->offers[i].from == kNobody;
      const bool unfinished = operation->made && operation->waits && !slots_->finished(operation->slots[i]);
      if (silent || unfinished || runner_->waits_for(*operation, i)) ranks.push_back(partner.rank);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::uint32_t SharedTransport::take_slot() {
  if (retiring_.size() >= next_look_ || retiring_bytes_ >= next_look_bytes_) {
    reuse_retired();
    next_look_ = std::max(kKept, 2 * retiring_.size());
    next_look_bytes_ = std::max(kKeptBytes, 2 * retiring_bytes_);
  }
  return slots_->take();
}

}  // namespace

std::unique_ptr<Transport> make_shared_transport(const Bootstrap& bootstrap, std::vector<Rank> members,
                                                 WaitRules rules, std::string& why, SharedOptions options) {
  std::unique_ptr<ControlBlocks> controls = exchange_control_blocks(bootstrap, members, why);
  if (!controls) return nullptr;
  return std::make_unique<SharedTransport>(bootstrap, std::move(members), std::move(controls),
                                           std::move(rules), options);
}

}  // namespace polyring
