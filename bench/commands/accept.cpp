// polyring accept: judges a cluster, check by check.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/text.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/gpu_watch.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/commands/accept_run.hpp"
#include "bench/commands/command.hpp"
#include "bench/contenders/contenders.hpp"
#include "bench/record/gather_probes.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "topology/inventory/probe.hpp"

namespace polyring {
namespace {

std::vector<std::string> check_names() {
  std::vector<std::string> names;
  for (const Check* check : checks()) names.emplace_back(check->name);
  return names;
}

}  // namespace

void add_accept(CommandLine& line) {
  auto options = std::make_shared<AcceptOptions>();
  const auto action = [options, &line] {
    if (options->nagios) keep_output_for_results();  // Nagios reads the first line
    options->transport.gpu.check();
    const std::vector<std::string>& wanted = options->checks;
    if (wanted.empty() || std::ranges::find(wanted, kGpuHealth.name) != wanted.end()) watch_own_gpus();
    const std::string own =
        probe_own_host([] { return probe_this_machine(); }, parse_timeout(options->measuring.timeout));
    return run_measuring(line.text(), options->measuring, own,
                         [&](const MeasuringRun& run) { return accept(*options, run); });
  };
  const Subcommand command =
      line.add_subcommand("accept", "Judge a cluster: which hosts, links and ranks are bad",
                          "mpirun -np 64 polyring accept site.toml --budget 20min -J accept.json\n"
                          "  srun --mpi=pmix polyring accept --checks pairs.allreduce --junit accept.xml",
                          action, true);
  std::vector<std::string> algorithms = strings(algorithm_names(Collective::allreduce));
  algorithms.emplace_back(kMpiAlgorithm);
  std::string known;
  for (const Check* check : checks())
    known += fmt::format("{}{}: {}", known.empty() ? "" : "; ", check->name, check->what);
  command
      .add_option("spec", options->spec,
                  "What the site wants, as TOML: which checks, and what they must measure; see "
                  "docs/acceptance.md")
      .type_name("FILE");
  command.add_option("--checks", options->checks, "Only these. " + known)
      .one_value_each_time()
      .type_name("NAME,…")
      .separated_by(',')
      .names({"check", check_names()});
  command
      .add_option("--algorithm", options->algorithms,
                  "Of all.allreduce; the first one of all other checks, too")
      .show_default()
      .type_name("NAME,…")
      .separated_by(',')
      .names({"algorithm", std::move(algorithms)});
  command
      .add_option(
          "--fabric", options->fabric,
          "Output of ibnetdiscover: which hosts are under which leaf switch, so that slow uplinks are told "
          "from slow hosts; once for each network, where rails have their own")
      .type_name("FILE")
      .one_value_each_time();
  command
      .add_option(
          "--like", options->like,
          "What each host must be like: a machine known by name, or a file that probe --from reads; it "
          "shows faults of links that all hosts have")
      .type_name("MACHINE");
  command.add_option("--data", options->data, "Also read the files in this folder, on all hosts at once")
      .type_name("DIR");
  add_model_option(command, options->model,
                   "What is trained. The check 'train' takes resnet50 if nothing is said; with --data the "
                   "model says how fast files must be read");
  command
      .add_option("--budget", options->budget, "Choose what fits into this time, that which tells most first")
      .type_name("TIME");
  command
      .add_option("--duration", options->duration,
                  "Run all checks again and again for this long: what fails in any round has failed")
      .type_name("TIME");
  command.add_option("--attempts", options->attempts, "How often to measure what does not pass at once")
      .show_default()
      .range(1, 100);
  command
      .add_option("--baseline", options->baseline,
                  "An earlier result of this machine: what the specification says nothing of must be as good")
      .type_name("FILE");
  command.add_option("--tolerance", options->tolerance, "By how much it may be worse than the --baseline")
      .show_default(kBaselineTolerance)
      .type_name("PART");
  command
      .add_option("--save-baseline", options->save_baseline,
                  "Also write the result there, where nothing failed; an older file is not replaced")
      .type_name("FILE");
  command
      .add_option(
          "--resume", options->resume,
          "The journal of a run of this job that came to no end: what that has judged is not measured "
          "again, and with --duration its time counts")
      .type_name("FILE.part");
  command.add_option("--junit", options->junit, "Also write JUnit XML; an older file is replaced")
      .type_name("FILE");
  command
      .add_option("--prometheus", options->prometheus,
                  "Also write a file for the textfile collector of Prometheus' node exporter; an older file "
                  "is replaced")
      .type_name("FILE");
  command.add_flag("--drain", options->drain,
                   "Also print the commands by which Slurm would drain the hosts that failed");
  command.add_flag("--nagios", options->nagios,
                   "Print one line, and exit with 0, 2 or 3, as plug-ins of Nagios do");
  options->transport.add_to(command);
  options->transport.gpu.add_to(command);
  options->measuring.add_to(command);
  add_output_option(command, options->output);
}

}  // namespace polyring
