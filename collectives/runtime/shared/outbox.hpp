// Outbox: how a rank writes its offers to another one of its host, into the inbox on that one's control
// block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/runtime/shared/control_block.hpp"
#include "collectives/runtime/shared/segment.hpp"

namespace polyring {

class Outbox {
 public:
  /// To the rank whose control block is mapped by `mapping`, which is kept. `writer` is this rank's place
  /// among the `ranks` of the host.
  Outbox(const Mapping& mapping, std::size_t writer, std::size_t ranks)
      : mapping_(&mapping), writer_(writer), ranks_(ranks) {}

  /// False, and nothing done, when the inbox is full. Throws Error(ExitCode::not_available) when there is no
  /// memory for one more entry.
  bool write(const Offer& offer, std::span<const std::byte> data);

 private:
  /// What is known of an entry.
  struct Link {
    std::uint32_t next = 0;     // in the ring
    std::uint32_t written = 0;  // offers, up to the last one in it
  };

  ControlBlock& control() const { return *reinterpret_cast<ControlBlock*>(mapping_->address()); }
  Inbox& inbox() const { return *reinterpret_cast<Inbox*>(control().inbox(writer_, ranks_)); }
  void fill(std::size_t begin) const;
  void open();
  bool find_next();
  bool is_free(std::uint32_t entry);

  const Mapping* mapping_;
  std::size_t writer_;
  std::size_t ranks_;
  std::vector<Link> links_;    // of the entries in use
  std::uint32_t at_ = 0;       // the entry that is written next
  std::uint32_t written_ = 0;  // offers
  std::uint32_t read_ = 0;     // of them, as far as this rank knows
};

}  // namespace polyring
