// HostPiece: a short piece of host memory through which long payloads are written and checked, so that no
// second copy of them is needed.
#pragma once

#include <algorithm>

#include "bench/measure/payload.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring {

class HostPiece {
 public:
  /// For payloads of up to `count` elements. Keeps the transport.
  HostPiece(Transport& transport, ElementKind kind, Count count)
      : transport_(transport),
        element_(size_of(kind)),
        elements_(std::min(count, kElements)),
        memory_(transport.host({static_cast<std::uint64_t>(elements_ * element_)})) {}

  std::byte* data() const { return memory_.get(); }
  Count elements() const { return elements_; }
  std::size_t bytes() const { return static_cast<std::size_t>(elements_ * element_); }

  /// Fills `count` elements at `to` with what the piece holds, again and again: right for what repeats itself
  /// as payloads do.
  void write(std::byte* to, Count count) const {
    each(count, [&](Count first, std::size_t part) {
      transport_.upload(to + first * element_, {memory_.get(), part});
    });
  }

  /// Of `count` elements at `from`, how many `payload` finds wrong.
  Count wrong(const Payload& payload, const std::byte* from, Count count, Match match = Match::bits,
              const Expected& expected = {}) const {
    Count wrong = 0;
    each(count, [&](Count first, std::size_t part) {
      transport_.download({memory_.get(), part}, from + first * element_);
      wrong += payload.wrong(expected, memory_.get(), static_cast<Count>(part) / element_, match, first);
    });
    return wrong;
  }

 private:
  /// Whole periods, about 1 MiB of float32.
  static constexpr Count kElements = 256 * Payload::kPeriod;

  void each(Count count, const auto& action) const {
    for (Count first = 0; first < count; first += elements_)
      action(first, static_cast<std::size_t>(std::min(elements_, count - first) * element_));
  }

  Transport& transport_;
  Count element_;
  Count elements_;
  Memory memory_;
};

}  // namespace polyring
