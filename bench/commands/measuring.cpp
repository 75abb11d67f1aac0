#include "bench/commands/measuring.hpp"

#include <utility>

#include "bench/cli/options.hpp"
#include "bench/contenders/contenders.hpp"
#include "bench/record/record.hpp"
#include "bench/session/collective.hpp"
#include "collectives/runtime/mpi/world.hpp"

namespace polyring {
namespace {

constexpr int kMostThreads = 1024;

}  // namespace

ResultFile MeasuringRun::header(const Cluster* cluster) const {
  return describe_run(command, cluster, &world);
}

void MeasuringRun::add_conditions(Session& session, std::span<const std::string> contenders) const {
  std::vector<HostConditions> conditions = load.conditions(world);
  if (world.rank() != 0) return;
  for (const std::string& sentence : doubts(conditions)) session.add_note(sentence + ".");
  if (const auto doubt = doubt_of(contenders, conditions)) session.add_note(*doubt + ".");
  session.set_conditions(std::move(conditions));
}

std::unique_ptr<Communicator> MeasuringRun::connect(const TransportOptions& options) const {
  world.set_timeout(timeout);
  return open_communicator(world, options);
}

void MeasuringOptions::add_to(Subcommand command) {
  command
      .add_option("-t,--nthreads", threads,
                  "Threads of this process that are ranks, in place of mpirun's processes; T times G in all")
      .show_default()
      .type_name("T")
      .range(1, kMostThreads);
  command
      .add_option("-g,--ngpus", ranks_per_thread,
                  "Ranks for each of these, as in nccl-tests; each is a thread of its own")
      .show_default()
      .type_name("G")
      .range(1, kMostThreads);
  add_timeout_option(command, timeout);
}

ExitCode run_measuring(const std::string& command, const MeasuringOptions& options,
                       const std::string& own_host,
                       const std::function<ExitCode(const MeasuringRun&)>& body) {
  const Seconds limit = parse_timeout(options.timeout);
  const auto on_rank = [&](World& world, Watchdog& watchdog) {
    const LoadWatch load;
    return body({command, limit, world, watchdog, load, own_host});
  };
  const int ranks = options.threads * options.ranks_per_thread;
  if (ranks == 1) return run_collectively(limit, on_rank);
  if (ranks > kMostThreads)
    usage_error("{} ranks are too many threads; give {} at most", ranks, kMostThreads);
  if (launched_ranks() > 1 || launched_rank() > 0) {
    usage_error(
        "{} has started several processes, and -t and -g are for one; leave them out, or start polyring "
        "alone",
        launched_by());
  }
  return run_on_threads(ranks, limit, on_rank);
}

}  // namespace polyring
