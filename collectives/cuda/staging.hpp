// Staging: messages between GPUs that do not reach each other. They pass through pinned host memory, piece by
// piece, so that copies to the host, messages between hosts and copies from the host overlap.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "collectives/cuda/activity.hpp"
#include "collectives/cuda/host_messages.hpp"
#include "collectives/cuda/queue.hpp"

namespace polyring::cuda {

struct StagingOptions {
  Bytes piece{1 << 20};  // the same on all ranks
  int pieces = 16;       // in use at one time, each way, as far as each message can have one
};

class Staging {
 public:
  /// Keeps the references.
  Staging(HostMessages& host, EventPool& events, ActivityLog& activities, StagingOptions options = {});
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// `done` is called by poll() or by the host's messages. Both ends give the same number of bytes.
  void send(Rank to, int tag, std::span<const std::byte> data, std::function<void()> done);
  void receive(Rank from, int tag, std::span<std::byte> data, std::function<void()> done);

  bool poll();
  bool is_idle() const { return out_.queue.is_idle() && in_.queue.is_idle(); }
  void forget();
  cudaStream_t out() const { return out_.queue.stream(); }
  cudaStream_t in() const { return in_.queue.stream(); }

 private:
  struct Message {
    Rank peer = 0;
    int tag = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::size_t begun = 0;  // bytes of the pieces that are under way, or through
    std::size_t through = 0;
    int under_way = 0;  // pieces
    std::function<void()> done;
  };
  using Key = std::pair<Rank, int>;
  /// One way.
  struct Way {
    explicit Way(EventPool& events) : queue(events) {}
    Queue queue;
    std::map<Key, std::deque<std::shared_ptr<Message>>> not_begun;  // or not in whole, in order
    std::multimap<std::size_t, std::byte*> free;                    // by their length
    int used = 0;
  };

  void start(Way& way, Message message);
  void advance(Way& way, const Key& key);
  void advance_all(Way& way);
  void begin_piece(Way& way, const std::shared_ptr<Message>& message);
  void end_piece(Way& way, const std::shared_ptr<Message>& message, std::byte* buffer, std::size_t bytes);
  std::size_t buffer_bytes(std::size_t bytes) const;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, Way& way);
  std::byte* take_buffer(Way& way, std::size_t bytes);

  HostMessages& host_;
  ActivityLog& activities_;
  StagingOptions options_;
  Way out_;
  Way in_;
  std::vector<Memory> buffers_;
};

}  // namespace polyring::cuda
