#include "collectives/schedule/verify_programs.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/program_text.hpp"
#include "tests/collectives/sweep.hpp"
#include "tests/sanitized.hpp"
#include "tests/topology/support.hpp"

namespace polyring {
namespace {

using testing::collectives_of;
using ::testing::HasSubstr;
using testing::plans_of;

const std::vector<testing::NamedReach>& kReaches = testing::reaches();

class EveryProgram : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryProgram, ::testing::ValuesIn(testing::algorithm_names()),
                         [](const auto& row) { return testing::identifier(row.param); });

TEST_P(EveryProgram, IsProved) {
  for (int ranks = 1; ranks <= (kSanitized ? 6 : 9); ++ranks) {
    for (const Plan& plan : plans_of(find_algorithm(GetParam()), ranks, 4)) {
      for (const Collective collective : collectives_of(plan)) {
        const Count count = collective == Collective::allreduce ? 2 * ranks + 1 : 2 * ranks;
        const Schedule schedule = make_schedule(plan, ranks, count, 4, collective);
        for (const auto& [name, reach] : kReaches) {
          for (const Partials partials : {Partials::in_output, Partials::apart}) {
            const auto fault = verify_programs(schedule, reach, partials);
            ASSERT_EQ(fault, std::nullopt) << to_text(collective) << " by " << to_text(plan)
                                           << " of ranks that reach " << name << ": " << *fault;
          }
        }
      }
    }
  }
}

/// A shape of each kind, and the ranks whose memory is within reach.
struct Shape {
  const char* name;
  Plan plan;
  Collective collective = Collective::allreduce;
  int reach = 0;  // an index of kReaches
  Partials partials = Partials::in_output;
};

TEST(Programs, AreThoseOfTheGoldenFiles) {
  const std::vector<Shape> shapes{
      {"allreduce-ring-4", {"ring", {4}}},
      {"allreduce-halving-3-apart", {"halving-doubling", {3}}, Collective::allreduce, 0, Partials::apart},
      {"allreduce-direct-4-in-memory", {"direct", {4}}, Collective::allreduce, 1},
      {"allreduce-one-shot-3-in-memory-apart", {"one-shot", {3}}, Collective::allreduce, 1, Partials::apart},
      {"allreduce-2x2-direct-ring", {"multi-ring", {2, 2}, {"direct", "ring"}}, Collective::allreduce, 2},
      {"allreduce-2x4-star-doubling", {"multi-ring", {2, 4}, {"star", "doubling"}}, Collective::allreduce, 2},
      {"reduce-scatter-2x2-direct-ring",
       {"multi-ring", {2, 2}, {"direct", "ring"}},
       Collective::reduce_scatter,
       2},
      {"reduce-scatter-halving-4-apart",
       {"halving-doubling", {4}},
       Collective::reduce_scatter,
       0,
       Partials::apart},
      {"allgather-ring-3", {"ring", {3}}, Collective::allgather},
      {"allgather-2x2-in-memory", {"multi-ring", {2, 2}, {"direct", "direct"}}, Collective::allgather, 1},
      {"alltoall-2x2-direct-pairwise", {"multi-ring", {2, 2}, {"direct", "pairwise"}}, Collective::alltoall}};
  for (const Shape& shape : shapes) {
    const int ranks = shape.plan.ranks();
    const Schedule schedule = make_schedule(shape.plan, ranks, 2 * ranks, 4, shape.collective);
    const auto& reach = kReaches[static_cast<std::size_t>(shape.reach)].reach;
    const std::vector<Program> programs = compile_all(schedule, {}, reach, shape.partials);
    std::string text;
    for (std::size_t rank = 0; rank < programs.size(); ++rank)
      text += fmt::format("{}rank {}\n{}", rank == 0 ? "" : "\n", rank, to_text(programs[rank]));
    testing::expect_golden(fmt::format("programs/{}.txt", shape.name), text);
  }
}

/// An iterator of a list's element.
auto at(auto& list, std::size_t i) { return list.begin() + static_cast<std::ptrdiff_t>(i); }

/// A program with one thing changed.
struct Mutant {
  std::string what;
  Program program;
};

class Mutator {
 public:
  explicit Mutator(const Program& program) : program_(program) {}

  std::vector<Mutant> all() {
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      mutate("step dropped", [=](Program& p) { p.steps.erase(at(p.steps, i)); });
      mutate_lists(i);
      mutate_folds(i);
      mutate_exchange(i);
      if (program_.steps[i].sends_first)
        mutate("no wait for what is sent", [=](Program& p) { p.steps[i].sends_first = false; });
    }
    if (program_.staging > 0) mutate("less staging", [](Program& p) { --p.staging; });
    if (program_.has_partials) mutate("no partial results", [](Program& p) { p.has_partials = false; });
    if (program_.has_work) mutate("no work area", [](Program& p) { p.has_work = false; });
    return std::move(mutants_);
  }

 private:
  void mutate(const std::string& what, const std::function<void(Program&)>& change) {
    mutants_.push_back({what, program_});
    change(mutants_.back().program);
  }

  /// Each element of a list of the step's: dropped, of other elements, of fewer.
  template <typename List>
  void mutate_list(std::size_t step, const std::string& name, List Program::Step::*list) {
    const List& all = program_.steps[step].*list;
    for (std::size_t i = 0; i < all.size(); ++i) {
      mutate(name + " dropped", [=](Program& p) { (p.steps[step].*list).erase(at(p.steps[step].*list, i)); });
      mutate(name + " of other elements",
             [=](Program& p) { slice_of((p.steps[step].*list)[i]).offset += 1; });
      mutate(name + " twice", [=](Program& p) {
        auto& elements = p.steps[step].*list;
        elements.push_back(elements[i]);
      });
      mutate(name + " of fewer elements", [=](Program& p) { slice_of((p.steps[step].*list)[i]).count -= 1; });
    }
  }
  static Slice& slice_of(Slice& slice) { return slice; }
  static Slice& slice_of(auto& element) { return element.slice; }

  void mutate_lists(std::size_t step) {
    mutate_list(step, "copy", &Program::Step::copies);
    mutate_list(step, "conversion", &Program::Step::widen);
    mutate_list(step, "send", &Program::Step::sends);
    mutate_list(step, "receive", &Program::Step::receives);
    mutate_list(step, "fold", &Program::Step::folds);
    for (std::size_t i = 0; i < program_.steps[step].copies.size(); ++i) {
      for (const Area area : {Area::input, Area::output, Area::partial, Area::work}) {
        const Program::Copy& copy = program_.steps[step].copies[i];
        if (copy.from != area)
          mutate("copy from elsewhere", [=](Program& p) { p.steps[step].copies[i].from = area; });
        if (copy.to != area)
          mutate("copy to elsewhere", [=](Program& p) { p.steps[step].copies[i].to = area; });
      }
    }
    for (std::size_t i = 0; i < program_.steps[step].sends.size(); ++i) {
      mutate("send to another", [=](Program& p) { p.steps[step].sends[i].peer ^= 1; });
      for (const Area area : {Area::input, Area::output, Area::partial, Area::work}) {
        if (program_.steps[step].sends[i].from == area) continue;
        mutate("send from elsewhere", [=](Program& p) { p.steps[step].sends[i].from = area; });
      }
    }
    for (std::size_t i = 0; i < program_.steps[step].receives.size(); ++i) {
      const Program::Receive& receive = program_.steps[step].receives[i];
      mutate("receive of the other kind", [=](Program& p) {
        bool& partial = p.steps[step].receives[i].partial;
        partial = !partial;
      });
      mutate("receive from another", [=](Program& p) { p.steps[step].receives[i].peer ^= 1; });
      if (receive.combine == Combine::copy) {
        for (const Area area : {Area::input, Area::output, Area::work}) {
          if (receive.to != area)
            mutate("receive to elsewhere", [=](Program& p) { p.steps[step].receives[i].to = area; });
        }
        mutate("receive into the partial results",
               [=](Program& p) { p.steps[step].receives[i].to = Area::partial; });
      } else {
        mutate("receive as a copy", [=](Program& p) { p.steps[step].receives[i].combine = Combine::copy; });
        mutate("receive beyond the staging",
               [=](Program& p) { p.steps[step].receives[i].staging = p.staging; });
        if (i > 0)
          mutate("receive into another's place", [=](Program& p) {
            p.steps[step].receives[i].staging = p.steps[step].receives[i - 1].staging;
          });
      }
    }
  }

  void mutate_folds(std::size_t step) {
    for (std::size_t i = 0; i < program_.steps[step].folds.size(); ++i) {
      const Program::Fold& fold = program_.steps[step].folds[i];
      for (std::size_t operand = 0; operand < fold.operands.size(); ++operand) {
        mutate("operand dropped", [=](Program& p) {
          auto& operands = p.steps[step].folds[i].operands;
          operands.erase(at(operands, operand));
        });
        if (operand > 0)
          mutate("operands in another order", [=](Program& p) {
            auto& operands = p.steps[step].folds[i].operands;
            std::swap(operands[operand - 1], operands[operand]);
          });
      }
      mutate("last or not", [=](Program& p) { p.steps[step].folds[i].last = !p.steps[step].folds[i].last; });
      for (const Area area : {Area::input, Area::output, Area::partial, Area::work}) {
        if (fold.own != area)
          mutate("own operand from elsewhere", [=](Program& p) { p.steps[step].folds[i].own = area; });
        if (fold.result != area)
          mutate("result to elsewhere", [=](Program& p) { p.steps[step].folds[i].result = area; });
      }
    }
  }

  void mutate_exchange(std::size_t step) {
    if (!program_.steps[step].exchange) return;
    const Program::Exchange& exchange = *program_.steps[step].exchange;
    const auto change = [&](const std::string& what, const std::function<void(Program::Exchange&)>& how) {
      mutate(what, [=](Program& p) { how(*p.steps[step].exchange); });
    };
    change("keeps or not", [](Program::Exchange& m) { m.keeps = !m.keeps; });
    const bool uses_own = exchange.keeps || std::ranges::any_of(exchange.partners, &Program::Partner::write);
    if (uses_own) {
      change("last or not", [](Program::Exchange& m) { m.last = !m.last; });
      change("other own elements", [](Program::Exchange& m) { m.own.offset += 1; });
    }
    for (const Area area : {Area::input, Area::output, Area::partial, Area::work}) {
      if (exchange.own_at != area && !exchange.own.empty())
        change("own operand from elsewhere", [=](Program::Exchange& m) { m.own_at = area; });
      if (exchange.result != area && exchange.keeps)
        change("result to elsewhere", [=](Program::Exchange& m) { m.result = area; });
    }
    for (std::size_t i = 0; i < exchange.partners.size(); ++i) {
      change("partner dropped", [=](Program::Exchange& m) { m.partners.erase(at(m.partners, i)); });
      change("reads or not", [=](Program::Exchange& m) { m.partners[i].read = !m.partners[i].read; });
      change("writes or not", [=](Program::Exchange& m) { m.partners[i].write = !m.partners[i].write; });
      if (!exchange.partners[i].gives.empty()) {
        change("gives other elements", [=](Program::Exchange& m) { m.partners[i].gives.offset += 1; });
        change("gives nothing", [=](Program::Exchange& m) { m.partners[i].gives = {}; });
        for (const Area area : {Area::input, Area::output, Area::partial, Area::work})
          if (exchange.partners[i].gives_from != area)
            change("gives from elsewhere", [=](Program::Exchange& m) { m.partners[i].gives_from = area; });
      }
      if (!exchange.partners[i].takes.empty()) {
        change("takes other elements", [=](Program::Exchange& m) { m.partners[i].takes.offset += 1; });
        change("takes nothing", [=](Program::Exchange& m) { m.partners[i].takes = {}; });
      }
    }
  }

  const Program& program_;
  std::vector<Mutant> mutants_;
};

bool is_caught(const Schedule& schedule, const std::vector<Program>& programs) {
  if (verify_programs(schedule, {}, programs)) return true;
  return schedule.collective != Collective::alltoall && verify_programs(schedule, {}, programs, true);
}

/// What an all-to-all leaves where it is, is the same in the input and in the area that it goes to.
bool may_be_harmless(const std::string& what, Collective collective) {
  return collective == Collective::alltoall &&
         (what == "send from elsewhere" || what == "copy from elsewhere");
}

/// Calls `check` with the programs of each shape, and what to call them.
template <typename Check>
void for_each_shape(const std::string& algorithm, const Check& check) {
  for (int ranks = 1; ranks <= (kSanitized ? 3 : 4); ++ranks) {
    for (const Plan& plan : plans_of(find_algorithm(algorithm), ranks, 4)) {
      for (const Collective collective : collectives_of(plan)) {
        const Count count = collective == Collective::allreduce ? 3 * ranks + 1 : 3 * ranks;
        const Schedule schedule = make_schedule(plan, ranks, count, 4, collective);
        for (const auto& [name, reach] : kReaches) {
          for (const Partials partials : {Partials::in_output, Partials::apart}) {
            check(schedule, compile_all(schedule, {}, reach, partials),
                  fmt::format("{} by {} of {} ranks that reach {}{}", to_text(collective), to_text(plan),
                              ranks, name, partials == Partials::apart ? ", partials apart" : ""));
          }
        }
      }
    }
  }
}

TEST_P(EveryProgram, EveryMutantOfOneOperationIsCaught) {
  for_each_shape(GetParam(), [](const Schedule& schedule, const std::vector<Program>& programs,
                                const std::string& shape) {
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      for (Mutant& mutant : Mutator(programs[rank]).all()) {
        if (may_be_harmless(mutant.what, schedule.collective)) continue;
        std::vector<Program> mutated = programs;
        mutated[rank] = std::move(mutant.program);
        EXPECT_TRUE(is_caught(schedule, mutated)) << shape << ", of rank " << rank << ": " << mutant.what;
      }
    }
  });
}

/// As a fault of the compiler would have it: then the ends of messages and exchanges agree.
TEST_P(EveryProgram, EveryMutantOfOneOperationOfAllRanksIsCaught) {
  for_each_shape(GetParam(), [](const Schedule& schedule, const std::vector<Program>& programs,
                                const std::string& shape) {
    std::map<std::pair<std::string, int>, std::map<std::size_t, Program>> mutants;  // by kind, place and rank
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      std::map<std::string, int> number;
      for (Mutant& mutant : Mutator(programs[rank]).all())
        mutants[{mutant.what, number[mutant.what]++}][rank] = std::move(mutant.program);
    }
    for (const auto& [which, of_ranks] : mutants) {
      if (may_be_harmless(which.first, schedule.collective)) continue;
      std::vector<Program> mutated = programs;
      for (const auto& [rank, program] : of_ranks) mutated[rank] = program;
      EXPECT_TRUE(is_caught(schedule, mutated))
          << shape << ", of all ranks: " << which.first << " " << which.second;
    }
  });
}

bool has_both(const Program::Step& step) { return !step.sends.empty() && !step.receives.empty(); }

/// With all sends of a step before all of its receives, in each such step or in the last alone. Returns
/// whether there is one.
bool split_sends(Program& program, bool last_alone) {
  const auto last = std::ranges::find_if(program.steps.rbegin(), program.steps.rend(), has_both);
  const auto at = static_cast<std::size_t>(program.steps.rend() - last);  // one behind it; 0: none
  std::vector<Program::Step> steps;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    Program::Step& step = program.steps[i];
    if (has_both(step) && (!last_alone || i + 1 == at)) {
      Program::Step first{};
      first.copies = std::exchange(step.copies, {});
      first.widen = std::exchange(step.widen, {});
      first.sends = std::exchange(step.sends, {});
      steps.push_back(std::move(first));
    }
    steps.push_back(std::move(step));
  }
  program.steps = std::move(steps);
  return at > 0;
}

/// Right only where a message is buffered.
TEST_P(EveryProgram, SendsThatWaitForTheirReceiversAreNoProof) {
  for (const bool last_alone : {false, true}) {
    bool any = false;
    int waits = 0;
    for_each_shape(GetParam(),
                   [&](const Schedule& schedule, std::vector<Program> programs, const std::string& shape) {
                     bool split = false;
                     for (Program& program : programs) split = split_sends(program, last_alone) || split;
                     const auto fault = verify_programs(schedule, {}, programs);
                     EXPECT_TRUE(split || !fault) << shape;
                     waits += fault && fault->find("waits for ever") != std::string::npos ? 1 : 0;
                     any = any || split;
                   });
    EXPECT_EQ(waits > 0, any) << last_alone;
  }
}

/// Messages between the same ranks have gone well in the steps before.
TEST(Programs, ThatWaitForEachOtherInTheirLastStepAreNoProof) {
  const Schedule schedule = make_schedule({"ring", {4}}, 4, 12, 4);
  std::vector<Program> programs = compile_all(schedule, {}, nullptr, Partials::in_output);
  for (Program& program : programs) ASSERT_TRUE(split_sends(program, true));
  EXPECT_THAT(verify_programs(schedule, {}, programs).value_or(""), HasSubstr("waits for ever"));
}

TEST(Programs, OfMoreRanksThanCanBeProvedAreRefused) {
  const Schedule schedule =
      make_schedule({"ring", {kMostRanksOfPrograms + 1}}, kMostRanksOfPrograms + 1, 100, 4);
  EXPECT_THROW(verify_programs(schedule, nullptr, Partials::in_output), Error);
}

}  // namespace
}  // namespace polyring
