// The protocol of the exchange kernel's flags (collectives/cuda/bodies/exchange.hpp) on memory that is
// ordered as weakly as a GPU's: all ways in which 2 ranks of 2 blocks can take turns in 2 exchanges, one
// after the other.
//
// On such memory stores become visible to others late and in any order, and loads find old values, unless the
// one happened before the other: in the same block, or from a release to an acquire that reads it, or from
// the end of a kernel to the next. So each block has a clock, which says how much of each block happened
// before. What is proved is that
//
//   - each load finds the right value, and the store of it happened before,
//   - each store happens after all loads and stores of what it overwrites,
//   - all ranks get to their end.
//
// The mutants show that nothing of the protocol can be left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace polyring {
namespace {

constexpr int kRanks = 2;
constexpr int kBlocks = 2;
constexpr int kAgents = kRanks * kBlocks;
constexpr int kExchanges = 2;

// A rank's memory. Each array of elements has one for each slice and each block, which combines it.
enum Array : int { kData, kResult, kStaging, kArrays };
enum Flag : int { kReady, kDone, kCopied, kFlags };
enum Counter : int { kStaged, kFinished, kCounters };

constexpr int kElements = kRanks * kArrays * kRanks * kBlocks;

int element(int rank, Array array, int slice, int block) {
  return ((rank * kArrays + array) * kRanks + slice) * kBlocks + block;
}

enum class Mutant {
  none,
  no_release,
  no_acquire,
  relaxed_arrival,
  no_reset,
  ready_before_copy,
  no_wait_for_ready,
  no_wait_for_own_copy,
  done_before_others,
  no_wait_for_done
};

/// Each rank combines a slice of its own for all ranks, or the only slice for itself.
enum class Way { part_for_all, all_for_itself };

struct Scenario {
  Way way;
  bool in_place;
  bool stages() const { return in_place && way == Way::all_for_itself; }
  int slices() const { return way == Way::part_for_all ? kRanks : 1; }
};

constexpr Scenario kScenarios[] = {{Way::part_for_all, false},
                                   {Way::part_for_all, true},
                                   {Way::all_for_itself, false},
                                   {Way::all_for_itself, true}};

struct Step {
  enum What { load, store, kernel_end, arrive, reset, signal, wait } what;
  int where = 0;         // an element, or a flag or counter of all
  int value = 0;         // that a load must find, that is stored, or the epoch
  bool by_last = false;  // only the last block that arrived takes it
};

/// What one block does. Before each exchange its rank puts operands into its data, and afterwards it reads
/// the results: these are kernels of their own.
class Script {
 public:
  Script(Scenario scenario, Mutant mutant, int rank, int block)
      : scenario_(scenario), mutant_(mutant), rank_(rank), peer_(1 - rank), block_(block) {
    for (int epoch = 1; epoch <= kExchanges; ++epoch) {
      operand_ = 2 * epoch - 1;
      result_ = 2 * epoch;
      for (int slice = 0; slice < scenario.slices(); ++slice) {
        add(Step::store, element(rank, kData, slice, block), operand_);
      }
      add(Step::kernel_end);
      add_exchange(epoch);
      add(Step::kernel_end);
      for (int slice = 0; slice < scenario.slices(); ++slice) {
        add(Step::load, element(rank, results(), slice, 1 - block), result_);
      }
      add(Step::kernel_end);
    }
  }

  std::vector<Step> steps;

 private:
  void add(Step::What what, int where = 0, int value = 0, bool by_last = false) {
    steps.push_back({what, where, value, by_last});
  }
  static int flag(int rank, Flag flag) { return rank * kFlags + flag; }
  Array results() const { return scenario_.in_place ? kData : kResult; }

  void add_exchange(int epoch) {
    if (mutant_ == Mutant::ready_before_copy) tell_ready(epoch, false);
    if (scenario_.stages()) {
      // Not the elements that this block combines.
      add(Step::load, element(rank_, kData, 0, 1 - block_), operand_);
      add(Step::store, element(rank_, kStaging, 0, 1 - block_), operand_);
      arrive(kStaged);
    }
    if (mutant_ != Mutant::ready_before_copy) tell_ready(epoch, scenario_.stages());
    if (mutant_ != Mutant::no_wait_for_ready) add(Step::wait, flag(rank_, kReady), epoch);
    if (scenario_.stages() && mutant_ != Mutant::no_wait_for_own_copy) {
      add(Step::wait, flag(rank_, kCopied), epoch);
    }
    combine();
    const bool by_last = mutant_ != Mutant::done_before_others;
    if (by_last) arrive(kFinished);
    if (by_last || block_ == 0) add(Step::signal, flag(peer_, kDone), epoch, by_last);
    if (mutant_ == Mutant::no_wait_for_done) return;
    if (by_last || block_ == 0) add(Step::wait, flag(rank_, kDone), epoch, by_last);
  }

  void arrive(Counter counter) {
    add(Step::arrive, rank_ * kCounters + counter);
    if (mutant_ != Mutant::no_reset) add(Step::reset, rank_ * kCounters + counter, 0, true);
  }

  void tell_ready(int epoch, bool by_last) {
    if (!by_last && block_ != 0) return;
    add(Step::signal, flag(peer_, kReady), epoch, by_last);
    add(Step::signal, flag(rank_, kCopied), epoch, by_last);
  }

  void combine() {
    const bool for_all = scenario_.way == Way::part_for_all;
    const int slice = for_all ? rank_ : 0;
    add(Step::load, element(rank_, kData, slice, block_), operand_);
    add(Step::load, element(peer_, scenario_.stages() ? kStaging : kData, slice, block_), operand_);
    add(Step::store, element(rank_, results(), slice, block_), result_);
    if (for_all) add(Step::store, element(peer_, results(), slice, block_), result_);
  }

  Scenario scenario_;
  Mutant mutant_;
  int rank_;
  int peer_;
  int block_;
  int operand_ = 0;  // the value of all operands
  int result_ = 0;
};

/// How many steps of each block happened before.
using Clock = std::array<std::uint8_t, kAgents>;

void join(Clock& clock, const Clock& other) {
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

/// Only bytes, by which it is known.
struct State {
  struct Agent {
    std::uint8_t step = 0;
    std::uint8_t last = 0;
    Clock clock{};
  };
  struct Element {
    std::uint8_t value = 0;
    Clock stored{};  // when, by whom
    Clock loaded{};
  };
  struct Flag {
    std::uint8_t epoch = 0;
    std::array<Clock, kExchanges + 1> released{};  // with each epoch
  };
  struct Counter {
    std::uint8_t value = 0;
    Clock released{};
  };

  std::array<Agent, kAgents> agents{};
  std::array<Element, kElements> elements{};
  std::array<Flag, kRanks * kFlags> flags{};
  std::array<Counter, kRanks * kCounters> counters{};

  std::string_view bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};

enum class Found { nothing, wrong_value, overwritten, deadlock };

class Checker {
 public:
  Checker(Scenario scenario, Mutant mutant) : mutant_(mutant) {
    for (int agent = 0; agent < kAgents; ++agent) {
      scripts_.push_back(Script(scenario, mutant, agent / kBlocks, agent % kBlocks).steps);
    }
  }

  /// What goes wrong first.
  Found run() {
    std::vector<State> open(1);
    while (!open.empty() && found_ == Found::nothing) {
      const State state = open.back();
      open.pop_back();
      bool ended = true;
      bool stuck = true;
      for (std::size_t agent = 0; agent < kAgents; ++agent) {
        const Step* const step = next(state, agent);
        ended &= step == nullptr;
        State after = state;
        if (step == nullptr || !take(after, agent, *step)) continue;
        stuck = false;
        if (seen_.insert(std::hash<std::string_view>{}(after.bytes())).second) open.push_back(after);
      }
      if (stuck && !ended) found_ = Found::deadlock;
    }
    return found_;
  }
  std::size_t states() const { return seen_.size(); }

 private:
  const Step* next(const State& state, std::size_t agent) const {
    const std::size_t step = state.agents[agent].step;
    return step < scripts_[agent].size() ? &scripts_[agent][step] : nullptr;
  }

  /// False where the agent has to wait.
  bool take(State& state, std::size_t agent, const Step& step) {
    if (step.what == Step::kernel_end) return end_kernel(state, agent);
    State::Agent& own = state.agents[agent];
    const auto where = static_cast<std::size_t>(step.where);
    if (step.what == Step::wait && state.flags[where].epoch < step.value) return false;
    const std::uint8_t now = ++own.step;
    own.clock[agent] = now;
    if (step.by_last && own.last == 0) return true;
    switch (step.what) {
      case Step::load:
        load(state.elements[where], own.clock, step.value);
        state.elements[where].loaded[agent] = now;
        break;
      case Step::store:
        store(state.elements[where], own.clock);
        state.elements[where].value = static_cast<std::uint8_t>(step.value);
        state.elements[where].stored[agent] = now;
        break;
      case Step::arrive:
        arrive(state.counters[where], own);
        break;
      case Step::reset:
        state.counters[where] = {};
        break;
      case Step::signal:
        state.flags[where].epoch = static_cast<std::uint8_t>(step.value);
        if (mutant_ != Mutant::no_release)
          state.flags[where].released.at(state.flags[where].epoch) = own.clock;
        break;
      default:  // a wait that is over; an older epoch brings less with it
        if (mutant_ != Mutant::no_acquire) {
          join(own.clock, state.flags[where].released[static_cast<std::size_t>(step.value)]);
        }
    }
    return true;
  }

  static bool all_before(const Clock& events, const Clock& clock) {
    return std::ranges::equal(events, clock, std::ranges::less_equal{});
  }
  void load(const State::Element& at, const Clock& clock, int expected) {
    if (at.value != expected || !all_before(at.stored, clock)) found_ = Found::wrong_value;
  }
  void store(const State::Element& at, const Clock& clock) {
    if (!all_before(at.stored, clock) || !all_before(at.loaded, clock)) found_ = Found::overwritten;
  }

  void arrive(State::Counter& counter, State::Agent& own) const {
    own.last = ++counter.value == kBlocks ? 1 : 0;
    if (mutant_ == Mutant::relaxed_arrival) return;
    join(own.clock, counter.released);
    counter.released = own.clock;
  }

  /// The blocks of a rank leave a kernel together.
  bool end_kernel(State& state, std::size_t agent) const {
    const std::size_t first = agent / kBlocks * kBlocks;
    Clock clock{};
    for (std::size_t block = first; block < first + kBlocks; ++block) {
      const Step* const step = next(state, block);
      if (step == nullptr || step->what != Step::kernel_end) return false;
      join(clock, state.agents[block].clock);
    }
    for (std::size_t block = first; block < first + kBlocks; ++block) {
      state.agents[block].clock = clock;
      state.agents[block].last = 0;
      ++state.agents[block].step;
    }
    return true;
  }

  Mutant mutant_;
  std::vector<std::vector<Step>> scripts_;
  std::unordered_set<std::size_t>
      seen_;  // states, by their hashes: of a million, none will be missed for that
  Found found_ = Found::nothing;
};

TEST(FlagProtocol, KeepsItsPromisesOnWeaklyOrderedMemory) {
  for (const Scenario& scenario : kScenarios) {
    Checker checker(scenario, Mutant::none);
    EXPECT_EQ(checker.run(), Found::nothing);
    EXPECT_GT(checker.states(), 10000u);
  }
}

TEST(FlagProtocol, BreaksThemWithoutAnyOfItsParts) {
  constexpr int kLastMutant = static_cast<int>(Mutant::no_wait_for_done);
  for (int number = 1; number <= kLastMutant; ++number) {
    const auto mutant = static_cast<Mutant>(number);
    const bool of_copy = mutant == Mutant::ready_before_copy || mutant == Mutant::no_wait_for_own_copy;
    for (const Scenario& scenario : kScenarios) {
      if (of_copy && !scenario.stages()) continue;
      Checker checker(scenario, mutant);
      const Found found = checker.run();
      EXPECT_NE(found, Found::nothing) << "mutant " << number << ", " << checker.states() << " states";
      EXPECT_EQ(found == Found::deadlock, mutant == Mutant::no_reset) << "mutant " << number;
    }
  }
}

}  // namespace
}  // namespace polyring
