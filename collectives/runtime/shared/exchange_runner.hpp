// ExchangeRunner: a rank's own part of an operation, done where its partners' memory lies.
#pragma once

#include <optional>
#include <vector>

#include "collectives/runtime/shared/memory.hpp"
#include "collectives/runtime/shared/operation.hpp"
#include "collectives/runtime/shared/options.hpp"

namespace polyring {

class ExchangeRunner {
 public:
  /// Keeps the memory.
  ExchangeRunner(Rank rank, SharedMemory& memory, SharedOptions options)
      : rank_(rank), memory_(memory), options_(options) {}

  /// The next part of what is this rank's to do. To be called once all offers have come that it needs, until
  /// the operation is made. False, and nothing done, while a partner has not filled that piece.
  bool run_next(SharedOperation& operation);
  /// Whether it is this partner that keeps the next piece back.
  bool waits_for(const SharedOperation& operation, std::size_t partner) const;

 private:
  /// Of the operands; of the results it is as much, in bytes of theirs.
  struct Part {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    std::uint32_t number = 0;
  };

  const std::byte* given(const Arrived& arrived, Part part) const;
  std::byte* taken(const Exchange& exchange, const Arrived& arrived, Part part) const;
  PieceBlocks* pieces(const SharedOperation& operation, std::size_t partner) const;
  std::optional<Part> next_part(const SharedOperation& operation) const;
  void run(const SharedOperation& operation, Part part);
  void combine(const SharedOperation& operation, Part part);
  void hand_on(const SharedOperation& operation, Part part);

  Rank rank_;
  SharedMemory& memory_;
  SharedOptions options_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  std::vector<std::byte*> far_;  // outputs that are not pieces
};

}  // namespace polyring
