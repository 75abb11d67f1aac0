#include "collectives/runtime/runner.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace polyring {

Runner::Runner(Transport& transport) : transport_(transport) {}

/// After a failure nothing is in flight.
template <typename Action>
void Runner::attempt(Action&& action) {
  if (failure_) throw *failure_;
  try {
    transport_.attempt(action);
  } catch (const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    failure_.emplace(known != nullptr ? known->code() : ExitCode::internal, error.what());
    for (Running& running : running_) {
      if (running.executor == nullptr) continue;
      running.executor->give_up();
      failed_.push_back(running.run);
      end(running);
    }
    waiting_.clear();
    throw;
  }
}

std::size_t Runner::free_place() {
  const auto free = std::ranges::find(running_, nullptr, &Running::executor);
  if (free != running_.end()) return index(free - running_.begin());
  running_.emplace_back();
  return running_.size() - 1;
}

Runner::Run Runner::start(Executor& executor, const std::byte* input, std::byte* output) {
  if (failure_) throw *failure_;
  // The same on all ranks, as it follows from what they have started before, or tried to start.
  if (next_tag_ > transport_.tags() - executor.tags()) next_tag_ = 0;
  const int first_tag = next_tag_;
  next_tag_ += executor.tags();
  executor.check(input, output);
  const std::size_t place = free_place();
  running_[place] = {next_, &executor, input, output, first_tag, false};
  const bool alone = busy_++ == 0;
  if (!alone) waiting_.push_back(place);
  const Run run = next_++;
  attempt([&] { alone ? begin(place) : begin_waiting(); });
  return run;
}

void Runner::begin(std::size_t place) {
  Running& next = running_[place];
  next.begun = true;
  next.executor->begin(next.input, next.output, next.first_tag, place * Executor::kTickets);
  if (next.executor->is_done()) end(next);
}

void Runner::end(Running& running) {
  running.executor = nullptr;
  --busy_;
}

/// Runs with a tag in common follow one another: then messages with this tag arrive in the order in which the
/// runs were started.
void Runner::begin_waiting() {
  while (!waiting_.empty()) {
    const std::size_t place = waiting_.front();
    const Running& next = running_[place];
    const auto is_in_the_way = [&](const Running& other) {
      return other.executor != nullptr && other.begun &&
             next.first_tag < other.first_tag + other.executor->tags() &&
             other.first_tag < next.first_tag + next.executor->tags();
    };
    if (std::ranges::any_of(running_, is_in_the_way)) return;
    waiting_.pop_front();
    begin(place);
  }
}

bool Runner::is_none_of_those(Run run) const {
  if (std::ranges::find(failed_, run) != failed_.end()) throw *failure_;
  return std::ranges::none_of(
      running_, [&](const Running& running) { return running.executor != nullptr && running.run == run; });
}

void Runner::take_done() {
  bool any_over = false;
  for (const Ticket ticket : done_) {
    Running& running = running_[ticket / Executor::kTickets];
    running.executor->take(ticket);
    if (!running.executor->is_done()) continue;
    end(running);
    any_over = true;
  }
  done_.clear();
  if (any_over && !waiting_.empty()) begin_waiting();
}

bool Runner::poll() {
  bool progress = false;
  attempt([&] {
    progress = transport_.poll(done_);
    take_done();
  });
  return progress;
}

void Runner::fail(const std::function<void()>& failing) { attempt(failing); }

void Runner::wait(Run run) {
  while (!is_over(run)) {
    attempt([this] {
      transport_.wait(done_);
      take_done();
    });
  }
}

}  // namespace polyring
