// Ranks as threads of one process: for tests, and for machines without MPI.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "collectives/runtime/transport.hpp"

namespace polyring {

/// What the ranks of one group share: who has offered what to whom.
class ThreadGroup {
 public:
  explicit ThreadGroup(int size, Seconds timeout = {60});

  int size() const { return static_cast<int>(ranks_.size()); }

  /// Makes every rank's wait() throw, now and later: one rank has failed.
  void abort(const std::string& reason);

 private:
  friend class ThreadTransport;

  struct Offer {
    Rank source;
    int tag;
    std::span<const std::byte> data;
    Ticket ticket;
  };
  struct Taken {
    Rank destination;
    Ticket ticket;
  };
  struct Mailbox {
    std::condition_variable changed;
    std::deque<Offer> offers;  // to this rank, oldest first
    std::vector<Taken> taken;  // sends of this rank that have been received
  };

  std::mutex mutex_;
  std::deque<Mailbox> ranks_;
  Seconds timeout_;
  std::string failure_;
};

/// A send is done when the receiver has copied it out of the sender's buffer: whoever touches that buffer too
/// early is seen by ThreadSanitizer.
class ThreadTransport final : public HostTransport {
 public:
  ThreadTransport(ThreadGroup& group, Rank rank)
      : group_(group), rank_(rank), sends_(static_cast<std::size_t>(group.size())) {}
  ~ThreadTransport() override { abandon(); }
  ThreadTransport(const ThreadTransport&) = delete;
  ThreadTransport& operator=(const ThreadTransport&) = delete;

  Rank rank() const override { return rank_; }
  int size() const override { return group_.size(); }
  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override;
  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override;
  bool poll(std::vector<Ticket>& done) override;
  std::vector<Rank> awaited() const override;
  void wait(std::vector<Ticket>& done) override;
  void abandon() override;

 private:
  struct Want {
    Rank source;
    int tag;
    std::span<std::byte> data;
    Ticket ticket;
  };
  struct Match {
    ThreadGroup::Offer offer;
    Want want;
  };

  std::vector<Match> take_matches();
  bool poll(std::vector<Ticket>& done, std::unique_lock<std::mutex>& lock);

  ThreadGroup& group_;
  Rank rank_;
  std::deque<Want> wants_;
  std::vector<int> sends_;  // to each rank, still in flight
};

/// Runs `body` on `ranks` threads and joins them. When one throws, the others' waits fail too, and the first
/// failure is thrown here.
void run_ranks(int ranks, const std::function<void(ThreadTransport&)>& body, Seconds timeout = {60});

}  // namespace polyring
