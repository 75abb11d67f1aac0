// Transport: moves and combines bytes for a schedule, on behalf of one rank.
//
// Nothing completes where it is started: each operation is started with a ticket, and wait() hands the ticket
// back once the operation is done. Addresses are only passed around: whether the CPU can touch what they
// point to is the transport's own affair.
//
// Local operations (copy, combine, divide) take effect in the order in which they were started. Messages from
// one rank to another with one tag arrive in the order in which they were sent. A buffer belongs to the
// operation until its ticket is back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collectives/element.hpp"
#include "collectives/schedule.hpp"
#include "topology/units.hpp"

namespace polyring {

/// Chosen by whoever starts an operation, any value.
using Ticket = std::uint64_t;

/// Memory that a transport's operations can use; freed as the transport wants it.
using Memory = std::unique_ptr<std::byte[], std::function<void(std::byte*)>>;

class Transport {
 public:
  virtual ~Transport() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  /// At least one byte, aligned for any element and vector.
  virtual Memory allocate(Bytes size) = 0;

  /// Copies between such memory and the host's, done on return: for preparing and checking, not for
  /// schedules.
  virtual void upload(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, const std::byte* from) = 0;

  /// `tag` is from 0 to kMostStreams − 1. Both ends give the same number of bytes.
  virtual void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) = 0;
  virtual void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) = 0;

  virtual void copy(std::byte* to, std::span<const std::byte> from, Ticket ticket) = 0;
  /// result = left op right; `result` may be `left`.
  virtual void combine(ElementKind kind, ReduceOp op, std::byte* result, const std::byte* left,
                       const std::byte* right, Count count, Ticket ticket) = 0;
  virtual void divide(ElementKind kind, std::byte* data, Count count, int divisor, Ticket ticket) = 0;

  /// Blocks until at least one operation is done, and appends the tickets of all that are. Not to be called
  /// when nothing is in flight. Throws Error(ExitCode::timeout), naming the ranks waited for, when nothing
  /// happens for the transport's time limit, and the library's own Error when a call fails.
  virtual void wait(std::vector<Ticket>& done) = 0;
};

/// What transports on host memory share: local operations are done at once by the CPU.
class HostTransport : public Transport {
 public:
  Memory allocate(Bytes size) override;
  void upload(std::byte* to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const std::byte* from) override;
  void copy(std::byte* to, std::span<const std::byte> from, Ticket ticket) override;
  void combine(ElementKind kind, ReduceOp op, std::byte* result, const std::byte* left,
               const std::byte* right, Count count, Ticket ticket) override;
  void divide(ElementKind kind, std::byte* data, Count count, int divisor, Ticket ticket) override;

 protected:
  /// Appends the tickets of local operations since the last call; true when there were any.
  bool take_local(std::vector<Ticket>& done);

 private:
  std::vector<Ticket> local_;
};

}  // namespace polyring
