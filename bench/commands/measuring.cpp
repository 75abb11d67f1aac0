#include "bench/commands/measuring.hpp"

#include "bench/cli/options.hpp"
#include "bench/record/record.hpp"
#include "bench/session/collective.hpp"

namespace polyring {

ResultFile MeasuringRun::header(const Cluster* cluster) const {
  return describe_run(command, cluster, &world);
}

std::unique_ptr<Communicator> MeasuringRun::connect(const TransportOptions& options) const {
  world.set_timeout(timeout);
  return open_communicator(world, options);
}

ExitCode run_measuring(const std::string& command, const std::string& timeout,
                       const std::function<ExitCode(const MeasuringRun&)>& body) {
  const Seconds limit = parse_timeout(timeout);
  return run_collectively(limit, [&](MpiWorld& world, Watchdog& watchdog) {
    return body({command, limit, world, watchdog});
  });
}

}  // namespace polyring
