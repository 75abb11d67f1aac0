// polyring verify: proves that schedules are allreduces.
#include "collectives/schedule/verify.hpp"

#include <fmt/format.h>

#include <memory>

#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/commands/command.hpp"
#include "collectives/schedule/catalogue.hpp"

namespace polyring {
namespace {

struct VerifyOptions {
  PlanOptions plan;
  std::string ranks;
  std::int64_t count = 1 << 20;
};

/// Those that --ranks lists, or as many as --dims makes.
std::vector<int> rank_counts(const VerifyOptions& options) {
  if (!options.ranks.empty()) return parse_counts(options.ranks, "--ranks");
  if (const auto dims = options.plan.asked_dims()) return {Plan{"", *dims}.ranks()};
  return parse_counts("1..64", "--ranks");
}

struct Case {
  Plan plan;
  int ranks = 1;
};

/// All that is asked for, checked before anything is proved.
std::vector<Case> cases_of(const VerifyOptions& options) {
  std::vector<Case> cases;
  options.plan.refuse_without_schedule("verify");
  for (const std::string& algorithm : options.plan.algorithms) {
    for (const int ranks : rank_counts(options)) {
      if (ranks > kMostVerifiableRanks) {
        usage_error("{} ranks are more than can be proved one by one; verify the same shape with at most {}",
                    ranks, kMostVerifiableRanks);
      }
      cases.push_back({constrained({algorithm, {ranks}}, options.plan.constraints(algorithm)), ranks});
      check_plan(cases.back().plan, ranks);
    }
  }
  return cases;
}

ExitCode verify_all(const VerifyOptions& options) {
  ExitCode worst = ExitCode::ok;
  for (const auto& [plan, ranks] : cases_of(options)) {
    const auto fault = verify(make_schedule(plan, ranks, options.count, size_of(ElementKind::float32)));
    print_out("{:<48} {:>6} ranks  {}\n", to_text(plan), ranks,
              fault ? "WRONG: " + *fault : "proved: every rank ends with every contribution exactly once");
    if (fault) worst = ExitCode::wrong_result;
    if (output_failed()) break;
  }
  return worst;
}

}  // namespace

void add_verify(CommandLine& line) {
  auto options = std::make_shared<VerifyOptions>();
  const Subcommand command = line.add_subcommand(
      "verify", "Prove that a schedule is an allreduce, without running it",
      "polyring verify --algorithm multi-ring --dims 4x8x8", [options] { return verify_all(*options); });
  std::vector<std::string> all;
  for (const Algorithm& algorithm : algorithms()) all.emplace_back(algorithm.name);
  options->plan.add_to(command, std::move(all), true);
  command
      .add_option("--ranks", options->ranks,
                  "Rank counts: 16, 2,3,5 or 2..64; without, those of --dims, or 1..64")
      .type_name("LIST");
  command.add_option("--count", options->count, "Elements of the payload")
      .show_default()
      .type_name("N")
      .range(std::int64_t{0}, std::int64_t{1} << 50);
}

}  // namespace polyring
