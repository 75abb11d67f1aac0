// Runner: has several collectives run at once over one transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "collectives/runtime/executor.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring {

/// All ranks start the same collectives in the same order; they need not end in this order. Not for several
/// threads at once. While it has runs, nobody else starts operations of the transport.
class Runner {
 public:
  /// Keeps the reference.
  explicit Runner(Transport& transport);

  /// A run that was started: the number of those before it.
  using Run = std::uint64_t;

  /// The executor is over this transport, lives until the run is over, and has no other run in flight. Both
  /// buffers belong to the run until it is over. Throws failure() where there is one.
  Run start(Executor& executor, const std::byte* input, std::byte* output);

  /// Whether the run is over. Throws failure() where it never will be.
  bool is_over(Run run) const { return (busy_ == 0 && failed_.empty()) || is_none_of_those(run); }
  bool is_busy() const { return busy_ > 0; }
  /// Goes on with all runs, without blocking. False when nothing has come nearer to its end.
  bool poll();
  /// Returns when the run is over, or throws what has made it fail. Goes on with all runs.
  void wait(Run run);

  /// What this throws ends all runs as if it were an error of theirs.
  void fail(const std::function<void()>& failing);

  /// After an error of any run: no run goes on, and no buffer is in use any more. It stays so.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  struct Running {
    Run run = 0;
    Executor* executor = nullptr;  // null: none
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    int first_tag = 0;
    bool begun = false;
  };

  template <typename Action>
  void attempt(Action&& action);
  bool is_none_of_those(Run run) const;
  void begin(std::size_t place);
  void end(Running& running);
  void begin_waiting();
  void take_done();
  std::size_t free_place();

  Transport& transport_;
  Run next_ = 0;
  int next_tag_ = 0;
  std::size_t busy_ = 0;             // runs that are neither over nor failed
  std::vector<Running> running_;     // a run's tickets name its place in here
  std::deque<std::size_t> waiting_;  // places of runs that have not begun, in their order
  std::vector<Ticket> done_;
  std::optional<Error> failure_;
  std::vector<Run> failed_;  // the runs that it has ended
};

}  // namespace polyring
