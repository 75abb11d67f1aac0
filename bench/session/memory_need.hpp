// What one rank's run takes of memory: counted by having the run's own code take it, from a transport that
// only counts.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "collectives/runtime/transport.hpp"

namespace polyring {

struct MemoryNeed {
  Bytes memory;         // of the host's
  Bytes shared_files;   // in /dev/shm; memory that we share has no file there
  Bytes address_space;  // the others' shared memory too, which a process of its own maps
  Bytes gpu{};          // of the memory of its GPU

  bool operator==(const MemoryNeed&) const = default;
};

/// In the place of a transport, for code that takes memory, and for collectives that are run for show: memory
/// has addresses where nothing is, nothing is moved, and all operations end in the order of their start. What
/// the other ranks do not reach goes to them through blocks of shared memory, which stay for later
/// operations.
class MemoryCount final : public Transport {
 public:
  /// Counts what `model` would give; keeps the reference.
  explicit MemoryCount(const Transport& model);

  Rank rank() const override { return model_.rank(); }
  int size() const override { return model_.size(); }
  bool reaches(Rank peer) const override { return model_.reaches(peer); }
  Memory allocate(Bytes size) override;
  Memory scratch(Bytes size) override;
  Memory host(Bytes size) override { return take(size, Where::own); }
  bool on_device() const override { return model_.on_device(); }

  void upload(std::byte*, std::span<const std::byte>) override {}
  void download(std::span<std::byte>, const std::byte*) override {}
  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override;
  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override;
  void exchange(const Exchange& exchange, Ticket ticket) override;
  void copy(std::byte* to, std::span<const std::byte> from, Ticket ticket) override;
  void combine(const Reduction& reduction, std::byte* result, std::span<const std::byte* const> operands,
               Count count, Ticket ticket) override;
  bool poll(std::vector<Ticket>& done) override;
  std::vector<Rank> awaited() const override { return {}; }
  void wait(std::vector<Ticket>& done) override { poll(done); }
  void abandon() override { operations_.clear(); }

  /// Of the most that was held at one time.
  MemoryNeed most() const { return need(held_->most, held_->most_shared, held_->most_gpu); }

 private:
  enum class Where { own, shared, gpu };
  /// Memory may be given back later than this object goes.
  struct Held {
    std::uint64_t own = 0;
    std::uint64_t shared = 0;
    std::uint64_t most = 0;  // of both together
    std::uint64_t most_shared = 0;
    std::uint64_t gpu = 0;
    std::uint64_t most_gpu = 0;
    std::map<std::uint64_t, std::uint64_t> reached;  // shared memory: its addresses and bytes
    std::uint64_t& in(Where where);
    void add(std::uint64_t bytes, Where where);
  };
  struct Operation {
    Ticket ticket = 0;
    std::vector<std::size_t> blocks;
    std::vector<Memory> copies;
  };

  Memory take(Bytes size, Where where);
  MemoryNeed need(std::uint64_t all, std::uint64_t shared, std::uint64_t gpu) const;
  bool is_reached(std::span<const std::byte> data) const;
  void take_block(Operation& operation, std::span<const std::byte> data);
  void take_copy(Operation& operation, std::span<const std::byte> data);

  const Transport& model_;
  std::shared_ptr<Held> held_ = std::make_shared<Held>();
  std::uint64_t others_ = 0;  // ranks whose shared memory this one maps
  std::uint64_t next_address_ = std::uint64_t{1} << 32;
  std::deque<Operation> operations_;
  std::map<std::size_t, std::size_t> free_blocks_;  // how many of each size
};

}  // namespace polyring
