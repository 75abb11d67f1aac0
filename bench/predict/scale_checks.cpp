#include "bench/predict/scale_checks.hpp"

#include "base/error.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/in_network.hpp"

namespace polyring {

void check_algorithms(const std::vector<std::string>& algorithms, const PlanOptions& plan, bool costs) {
  bool planned = false;
  bool in_network = false;
  for (const std::string& algorithm : algorithms) {
    in_network = in_network || algorithm == kInNetwork;
    if (!has_schedule(algorithm)) continue;
    find_algorithm(algorithm);
    planned = true;
  }
  if (planned) return;
  if (in_network && !plan.asks_no_dims()) {
    usage_error(
        "in-network reduces inside hosts and then between them; leave --dims, --ddl-options and --patterns "
        "out");
  }
  if (!in_network && costs) {
    usage_error(
        "--message-overhead and --reduction-rate are not of nccl and mpi, which have their own; leave them "
        "out, "
        "or name another --algorithm");
  }
  if (!in_network && !plan.asks_nothing()) {
    usage_error(
        "nccl and mpi choose their own plans; leave --dims, --ddl-options, --patterns, --lanes and --chunk "
        "out");
  }
}

}  // namespace polyring
