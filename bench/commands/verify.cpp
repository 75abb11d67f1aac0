// polyring verify: proves that schedules do what their collective says.
#include "collectives/schedule/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/text.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/commands/command.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/planner.hpp"
#include "collectives/schedule/verify_programs.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

struct VerifyOptions {
  PlanOptions plan;
  std::string ranks;
  std::int64_t count = 1 << 20;
  std::string collective = to_text(Collective::allreduce);
};

/// Those that --ranks lists, or as many as --dims makes.
std::vector<int> rank_counts(const VerifyOptions& options) {
  if (!options.ranks.empty()) return parse_counts(options.ranks, "--ranks", Range::has_each);
  if (const auto dims = options.plan.asked_dims()) return {Plan{"", *dims}.ranks()};
  return parse_counts("1..64", "--ranks");
}

struct Case {
  Plan plan;
  int ranks = 1;
};

std::vector<std::string> all_algorithms() { return strings(algorithm_names()); }

/// Those that the rules have for it, all ranks being on one host; empty for all but multi-ring.
std::vector<std::string> patterns_for(Collective collective, const Plan& plan) {
  Problem problem{plan.algorithm, {plan.ranks(), plan.ranks(), 1}};
  problem.collective = collective;
  return patterns_by_rule(problem, plan.dims);
}

/// All that is asked for, checked before anything is proved.
std::vector<Case> cases_of(const VerifyOptions& options, Collective collective) {
  std::vector<Case> cases;
  const int most = most_verifiable_ranks(collective);
  const bool by_default = options.plan.algorithms == all_algorithms();
  options.plan.refuse_without_schedule("verify");
  for (const std::string& algorithm : options.plan.algorithms) {
    for (const int ranks : rank_counts(options)) {
      if (ranks > most) {
        usage_error("{} ranks are more than can be proved one by one; verify the same shape with at most {}",
                    ranks, most);
      }
      Plan plan = constrained({algorithm, {ranks}}, options.plan.constraints(algorithm));
      check_plan(plan, ranks);
      if (!can_make(plan, collective) && plan.patterns.empty())
        plan.patterns = patterns_for(collective, plan);
      if (by_default && plan.patterns.empty() && !can_make(plan, collective)) continue;
      check_collective(plan, collective);
      cases.push_back({std::move(plan), ranks});
    }
  }
  return cases;
}

const char* what_is_proved(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return "every rank ends with every contribution exactly once";
    case Collective::reduce_scatter:
      return "every rank ends with every contribution to its block exactly once";
    case Collective::allgather:
      return "every rank ends with every rank's block";
    case Collective::alltoall:
      return "every rank ends with every rank's block for it";
  }
  return "";
}

/// Of what runs where ranks send messages, where all reach each other's memory, and where those of the first
/// dimension do.
std::optional<std::string> fault_of_programs(const Schedule& schedule, int first_dimension) {
  for (const int in_host : {1, schedule.ranks, first_dimension}) {
    const auto reach = [in_host](Rank a, Rank b) { return a / in_host == b / in_host; };
    for (const Partials partials : {Partials::in_output, Partials::apart}) {
      auto fault = verify_programs(schedule, reach, partials);
      if (fault) return fault;
    }
  }
  return std::nullopt;
}

std::string verdict_line(const Plan& plan, Collective collective, const std::optional<std::string>& fault) {
  const int ranks = plan.ranks();
  std::string verdict = fault ? "WRONG: " + *fault : fmt::format("proved: {}", what_is_proved(collective));
  if (!fault && ranks > kMostRanksOfPrograms)
    verdict += fmt::format("; programs skipped: they are of more than {} ranks", kMostRanksOfPrograms);
  return fmt::format("{:<48} {:>6} {}  {}\n", to_text(plan), ranks, ranks == 1 ? "rank " : "ranks", verdict);
}

ExitCode verify_all(const VerifyOptions& options) {
  ExitCode worst = ExitCode::ok;
  Table verdicts({{"", "plan", "", Align::left},
                  {"", "ranks", ""},
                  {"", "schedule", "", Align::left},
                  {"", "programs", "", Align::left},
                  {"", "fault", "", Align::left}});
  const Collective collective = parse_collective(options.collective);
  for (const auto& [plan, ranks] : cases_of(options, collective)) {
    const Count count = options.count - options.count % blocks_of(collective, ranks);
    const Schedule schedule = make_schedule(plan, ranks, count, size_of(ElementKind::float32), collective);
    auto fault = verify(schedule);
    const char* of_schedule = fault ? "wrong" : "proved";
    const bool with_programs = !fault && ranks <= kMostRanksOfPrograms;
    if (with_programs) fault = fault_of_programs(schedule, plan.dims.front());
    const char* of_programs = !with_programs ? "skipped" : fault ? "wrong" : "proved";
    verdicts.add_row({to_text(plan), std::to_string(ranks), of_schedule, of_programs, fault.value_or("")});
    if (fault) worst = ExitCode::wrong_result;
    if (format() == Format::text) print_out(verdict_line(plan, collective, fault));
    if (output_failed()) break;
  }
  if (format() != Format::text) print_table(verdicts);
  return worst;
}

}  // namespace

void add_verify(CommandLine& line) {
  auto options = std::make_shared<VerifyOptions>();
  const Subcommand command =
      line.add_subcommand("verify",
                          "Prove that a schedule does what its collective says, without running it; up to 64 "
                          "ranks also the programs "
                          "that are made of it",
                          "polyring verify --algorithm multi-ring --dims 4x8x8\n  polyring verify "
                          "--collective alltoall --ranks 2..16",
                          [options] { return verify_all(*options); });
  options->plan.add_to(command, all_algorithms(), true, Collective::allreduce, {}, modelled_algorithms());
  command
      .add_option(
          "--collective", options->collective,
          "allreduce, reduce-scatter, allgather or alltoall; without --algorithm, by all that can make it")
      .show_default()
      .type_name("NAME")
      .names({"collective", collective_names()});
  command
      .add_option("--ranks,--gpus", options->ranks,
                  "Rank counts: 16, 2,3,5 or 2..8, which is each of these; without, those of --dims, or the "
                  "powers of two up to 64")
      .type_name("LIST");
  command
      .add_option("--count", options->count,
                  "Elements of the payload; where it has blocks, rounded down to whole ones")
      .show_default()
      .type_name("N")
      .range(std::int64_t{0}, std::int64_t{1} << 50);
  add_format_option(command);
}

}  // namespace polyring
