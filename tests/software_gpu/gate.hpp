// A counter that only grows, and that threads of any process can wait for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace polyring::software_gpu {

class Gate {
 public:
  /// Counters wrap: `ticket` may be at most 2^31 ahead.
  bool reached(std::uint32_t ticket) const {
    return static_cast<std::int32_t>(value_.load(std::memory_order_acquire) - ticket) >= 0;
  }
  void wait(std::uint32_t ticket) const;
  void advance(std::uint32_t ticket);

 private:
  std::atomic<std::uint32_t> value_{0};
};

/// A moment in a stream, of this process or another: what has been enqueued before it is done.
struct Point {
  std::shared_ptr<const Gate> gate;  // null: the moment is past
  std::uint32_t ticket = 0;

  bool reached() const { return gate == nullptr || gate->reached(ticket); }
  void wait() const {
    if (gate != nullptr) gate->wait(ticket);
  }
};

}  // namespace polyring::software_gpu
