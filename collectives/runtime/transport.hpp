// Transport: moves and combines bytes for a schedule, on behalf of one rank.
//
// Nothing completes where it is started: each operation is started with a ticket, and wait() hands the ticket
// back once the operation is done. Addresses are only passed around: whether the CPU can touch what they
// point to is the transport's own affair.
//
// Local operations (copy, combine) take effect in the order in which they were started. Messages from one
// rank to another with one tag arrive in the order in which they were sent, and so do exchanges.
//
// A buffer belongs to the operation until its ticket is back. An exception must not break that rule: what
// starts operations runs inside attempt().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "collectives/schedule/element.hpp"
#include "collectives/schedule/schedule.hpp"

namespace polyring {

/// Chosen by whoever starts an operation, any value.
using Ticket = std::uint64_t;

/// Memory that a transport's operations can use; freed as the transport wants it.
using Memory = std::unique_ptr<std::byte[], std::function<void(std::byte*)>>;

/// At least one byte of the host's, on a page of its own. Throws Error(ExitCode::not_available) when there is
/// none.
Memory host_memory(Bytes size);

/// One rank's part of a step among ranks that reach each other's memory. Each reads what the others give it,
/// combines that with its own operand in the order of the ranks, and writes the result to itself, to where
/// others take it, or both: one pass over the memory.
struct Exchange {
  struct Partner {
    Rank rank = 0;
    std::span<const std::byte> gives;  // of this rank's memory, to be read by the partner
    std::span<std::byte> takes;        // of this rank's memory, to be written by the partner
    bool read = false;                 // this rank reads what the partner gives
    bool write = false;                // this rank writes where the partner takes
  };

  int tag = 0;                     // from 0 to tags() − 1
  std::vector<Partner> partners;   // ascending by rank, at least one
  std::span<const std::byte> own;  // this rank's operand, or what it hands on; as long as what it reads
  std::byte* result = nullptr;     // for this rank; null where it only hands on
  Reduction reduction;
  Bytes payload;  // of the whole collective: what caches do not hold need not pass through them

  /// Bytes of the result of so many bytes of operands.
  std::size_t result_bytes(std::size_t of_operands) const;
  /// Whether what this rank combines comes to lie on some of `data`.
  bool overwrites(std::span<const std::byte> data) const;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  /// Whether payloads are in the memory of a device, which the CPU does not touch.
  virtual bool on_device() const { return false; }

  /// For payloads. At least one byte, aligned for any element and vector, and where ranks reach each other's
  /// memory, within their reach.
  virtual Memory allocate(Bytes size) = 0;
  /// For intermediate results that no other rank needs to reach.
  virtual Memory scratch(Bytes size) { return allocate(size); }

  /// Brings whole private pages of a program's own within the reach of the ranks that reach this one's
  /// memory, as allocate()'s are, with their contents; nobody uses them meanwhile. Throws
  /// Error(ExitCode::not_available) where that fails, with the pages as before. By default it does nothing:
  /// where nobody reaches memory, that would bring nothing.
  virtual void register_memory(std::span<std::byte>) {}
  /// Private pages again, with their contents, also after abandon(). Only of what was registered. Throws
  /// Error(ExitCode::not_available) where there is no memory for them: it stays registered then. Throws a
  /// usage Error where the program has mapped something else there: it is registered no longer.
  virtual void deregister_memory(std::byte*) {}

  /// Host memory to upload from, and to download to.
  virtual Memory host(Bytes size) { return host_memory(size); }
  /// Copies between such memory and the host's, done on return: for preparing and checking, not for
  /// schedules.
  virtual void upload(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, const std::byte* from) = 0;

  /// Tags are from 0 to this − 1; at least kMostStreams.
  virtual int tags() const { return 1 << 30; }

  /// Both ends give the same number of bytes.
  virtual void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) = 0;
  virtual void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) = 0;

  /// Whether this rank and `peer` reach each other's memory. Any two whom a third reaches do, too.
  virtual bool reaches(Rank) const { return false; }
  /// Only with partners that reaches() is true of. Done when the result is there, partners have written what
  /// they were to write, and what this rank gave may be written over: they have read it, or have a copy. The
  /// result may lie on what this rank gives.
  virtual void exchange(const Exchange& exchange, Ticket ticket);

  virtual void copy(std::byte* to, std::span<const std::byte> from, Ticket ticket) = 0;
  /// There is at least one operand; `result` may be one of them.
  virtual void combine(const Reduction& reduction, std::byte* result,
                       std::span<const std::byte* const> operands, Count count, Ticket ticket) = 0;

  /// Goes on with what was started, without blocking. Appends the tickets of what is done by then. True when
  /// there were any, and also when something has come nearer to its end.
  virtual bool poll(std::vector<Ticket>& done) = 0;
  /// The other ranks on which the operations in flight depend.
  virtual std::vector<Rank> awaited() const = 0;
  /// Blocks until at least one operation is done, and appends the tickets of all that are. Not to be called
  /// when nothing is in flight. Throws Error(ExitCode::timeout), naming the ranks waited for, when nothing
  /// comes nearer to its end for the transport's time limit, and the library's own Error when a call fails.
  virtual void wait(std::vector<Ticket>& done) = 0;

  /// Runs what starts operations and waits for them. If it throws, it does so with nothing in flight: then
  /// all that the operations used may be freed.
  template <typename Action>
  void attempt(Action&& action) {
    try {
      action();
    } catch (...) {
      abandon();
      throw;
    }
  }

  /// Gives up all that is in flight. Afterwards no operation uses a buffer of this rank any more, no ticket
  /// comes back, and the transport is good for nothing but its end: the other ranks' operations with this
  /// one remain unfinished. Where an operation cannot be stopped, the job ends in here with a sentence.
  virtual void abandon() = 0;
};

/// What transports on host memory share: local operations are done at once by the CPU.
class HostTransport : public Transport {
 public:
  Memory allocate(Bytes size) override;
  void upload(std::byte* to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const std::byte* from) override;
  void copy(std::byte* to, std::span<const std::byte> from, Ticket ticket) override;
  void combine(const Reduction& reduction, std::byte* result, std::span<const std::byte* const> operands,
               Count count, Ticket ticket) override;

 protected:
  /// Appends the tickets of local operations since the last call; true when there were any.
  bool take_local(std::vector<Ticket>& done);

 private:
  std::vector<Ticket> local_;
};

/// Throws Error(ExitCode::wrong_result) where ranks do different things: a peer gives other than so many
/// bytes.
void check_length(Rank peer, std::uint64_t expected, std::uint64_t bytes);
[[noreturn]] void fail_by_mismatch(Rank peer);

/// How long a rank polls for others, and what it does then.
struct WaitRules {
  Seconds timeout{60};
  bool yields = false;  // ranks share cores: who waits must let the others run
  /// Throws Error(ExitCode::timeout).
  std::function<void(const std::string& what, const std::vector<Rank>& whom)> give_up;
  /// Optional. Told of a failure while its exception is being handled and all buffers are still there; it may
  /// end the job.
  std::function<void()> failed{};
  /// Optional. Called after each poll that found nothing, for what must go on meanwhile. What it throws is a
  /// failure of the transport.
  std::function<void()> idle{};
};

/// A transport on host memory that finds out by polling what has happened.
class PollingTransport : public HostTransport {
 public:
  explicit PollingTransport(WaitRules rules) : rules_(std::move(rules)) {}
  void wait(std::vector<Ticket>& done) final;
  void abandon() final;

 protected:
  /// abandon(), when nobody has ended the job before.
  virtual void stop() = 0;
  const WaitRules& rules() const { return rules_; }

 private:
  WaitRules rules_;
};

}  // namespace polyring
