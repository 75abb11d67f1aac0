// Communicator: a group of ranks that does collectives together, several at once.
//
//     Communicator communicator(bootstrap);
//     Memory gradients = communicator.allocate(bytes);
//     Operation sum = communicator.start({.count = count}, gradients.get(), gradients.get());
//     …                                                        // compute something else
//     sum.wait();
//
// All ranks start the same operations in the same order, and may await them in any order. One thread at a
// time uses a communicator. Any number of communicators may exist, over the same ranks or others; but a
// thread that waits for an operation of one of them does not go on with those of another, so a thread that
// uses several must await them in the same order on all ranks, or test() them by turns.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/executor.hpp"
#include "collectives/runtime/hosts.hpp"
#include "collectives/runtime/runner.hpp"
#include "collectives/runtime/transports/joined.hpp"
#include "collectives/schedule/planner.hpp"

namespace polyring {

struct CommunicatorOptions {
  /// A rank gives up when nothing has come nearer to its end for so long.
  Seconds timeout{60};
  TransportChoice transport = TransportChoice::automatic;
  /// What connects hosts; empty: TCP, over `interface`.
  MakeNetwork network{};
  std::string interface;  // empty: that of the default route
  /// Buffers are in the memory of a device; empty: in the host's.
  MoveToDevice device{};
  /// How a rank waits, and what it does when it gives up; empty: it throws Error(ExitCode::timeout) after
  /// `timeout`.
  std::optional<WaitRules> rules{};
  /// As WaitRules::idle, where `rules` is empty.
  std::function<void()> idle{};
  std::string algorithm{kTunedAlgorithm};
  PlanConstraints constraints{};
  /// Lives as long as the communicator, and chooses the same on all ranks by itself: ranks do not ask at the
  /// same time, nor equally often. Null: a RulePlanner.
  const Planner* planner = nullptr;
};

class Communicator;
class PersistentCollective;

/// A collective that was started. It is over, or has failed, before its communicator ends.
class Operation {
 public:
  /// One that is over.
  Operation() = default;
  /// Waits; what fails then is known to the communicator.
  ~Operation() {
    if (communicator_ != nullptr) end();
  }
  Operation(Operation&& other) noexcept
      : communicator_(std::exchange(other.communicator_, nullptr)),
        run_(other.run_),
        failure_(std::exchange(other.failure_, std::nullopt)) {}
  Operation& operator=(Operation&& other) noexcept;

  /// Goes on with all of the communicator's operations, without blocking. True when this one is over: its
  /// output is complete, and its buffers are the caller's again. Throws what has made it fail.
  bool test();
  /// Returns when it is over. Goes on with all of the communicator's operations.
  void wait() {
    if (communicator_ != nullptr || failure_) wait_in_earnest();
  }

 private:
  friend class Communicator;
  friend class PersistentCollective;
  Operation(Communicator& communicator, Runner::Run run) : communicator_(&communicator), run_(run) {}

  void end() noexcept;
  void wait_in_earnest();
  template <typename Action>
  void attempt(Action&& action);

  Communicator* communicator_ = nullptr;  // null: it is over, or has failed
  Runner::Run run_ = 0;
  std::optional<Error> failure_;
};

/// A collective by one plan, to be run any number of times, one after the other; MPI calls such persistent.
/// It ends before its communicator.
class PersistentCollective {
 public:
  /// Waits for its run; what fails then is known to the communicator.
  ~PersistentCollective();
  PersistentCollective(PersistentCollective&&) noexcept = default;
  PersistentCollective& operator=(PersistentCollective&&) = delete;

  /// As Communicator::start() does. Throws a usage Error while its last run is in flight.
  Operation start(const std::byte* input, std::byte* output);
  /// The same, and waits.
  void run(const std::byte* input, std::byte* output);

  const std::string& algorithm() const { return executor_->schedule().algorithm; }

 private:
  friend class Communicator;
  PersistentCollective(Communicator& communicator, std::unique_ptr<Executor> executor)
      : communicator_(&communicator), executor_(std::move(executor)) {}

  Runner::Run begin(const std::byte* input, std::byte* output);

  Communicator* communicator_;
  std::unique_ptr<Executor> executor_;  // null: moved from
  std::optional<Runner::Run> run_;      // the last
};

class Communicator {
 public:
  /// Collective. Keeps the reference to the bootstrap. Throws Error(ExitCode::not_available) where no
  /// transport can be had, and Error(ExitCode::timeout) where a rank does not answer.
  explicit Communicator(const Bootstrap& bootstrap, CommunicatorOptions options = {});
  /// Gives up operations that are not over.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Rank rank() const { return bootstrap_.rank(); }
  int size() const { return bootstrap_.size(); }
  const RankHosts& hosts() const { return hosts_.hosts; }
  Transport& transport() const { return *joined_.transport; }
  /// How its ranks are joined.
  const JoinedTransport& joined() const { return joined_; }

  /// Memory that the ranks of a host reach directly: operations on it need no copies. It is freed before the
  /// communicator.
  Memory allocate(Bytes size) const { return joined_.transport->allocate(size); }

  /// As that of allocate(), a program's own memory: whole private pages of the host's, which keep their
  /// contents. Nobody uses them meanwhile; not collective. Throws a usage Error for other memory, and
  /// Error(ExitCode::not_available) where that fails, or buffers are on a device. Neither breaks the
  /// communicator, and the memory is as before.
  void register_memory(std::span<std::byte> memory) const;
  /// No operation is in flight on it, unless the communicator is broken. See Transport::deregister_memory().
  void deregister_memory(std::byte* begin) const { joined_.transport->deregister_memory(begin); }

  /// What a planner is asked for such a collective.
  Problem problem(const std::string& algorithm, const CollectiveOf& what) const;
  /// The plan of start(). Throws a usage Error where the constraints allow none.
  PlanChoice plan(const CollectiveOf& what) const;

  /// Starts a collective on this rank's buffers, in place where the shorter is the rank's block of the longer
  /// (not for an alltoall). They belong to the operation until it is over. Throws a usage Error for a count
  /// or buffers that cannot be: where all ranks' are refused, the communicator is as before. Any other error,
  /// such as a lack of memory, breaks it.
  Operation start(const CollectiveOf& what, const std::byte* input, std::byte* output);
  /// The same, and waits.
  void run(const CollectiveOf& what, const std::byte* input, std::byte* output) {
    start(what, input, output).wait();
  }

  /// By exactly this plan. All ranks prepare the same, in any order. Throws as start() does, and a usage
  /// Error for a plan that is not for these ranks.
  PersistentCollective prepare(const CollectiveOf& what, const Plan& plan);

  /// Gives up operations that are not over: they fail with this, and none can be started any more.
  void give_up(const Error& why) noexcept;

  /// Why the communicator is broken: an operation has failed. Then no operation is in flight, no buffer is in
  /// use any more, and none can be started. The others' operations fail, too, at the latest after the time
  /// limit.
  const std::optional<Error>& failure() const { return runner_.failure(); }

 private:
  friend class Operation;
  friend class PersistentCollective;

  /// An executor, and the run that uses it.
  struct Prepared {
    CollectiveOf what;
    std::unique_ptr<Executor> executor;
    std::optional<Runner::Run> run;
  };

  using Clock = std::chrono::steady_clock;

  template <typename Preparing>
  auto attempt(Preparing&& preparing);
  Prepared& prepared(const CollectiveOf& what);
  Runner::Run start(Executor& executor, const std::byte* input, std::byte* output);
  void wait(Runner::Run run);
  void poll(Runner::Run run);
  JoinedTransport make_joined() const;
  WaitRules default_rules() const;
  Network make_network() const;

  const Bootstrap& bootstrap_;
  CommunicatorOptions options_;
  GroupHosts hosts_;
  WaitRules rules_;
  JoinedTransport joined_;
  RulePlanner rule_planner_;
  std::list<Prepared> prepared_;  // the one that was used last comes first
  Runner runner_;
  std::optional<Clock::time_point> quiet_since_;  // when poll() first found nothing new
};

}  // namespace polyring
