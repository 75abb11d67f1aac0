// polyring probe: what this machine, all hosts of a job, some files or a preset are.
#include "topology/inventory/probe.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/commands/command.hpp"
#include "bench/predict/expected.hpp"
#include "bench/record/gather_probes.hpp"
#include "bench/record/picture.hpp"
#include "bench/session/collective.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "reports/picture.hpp"
#include "reports/tables.hpp"
#include "topology/inventory/formats/fabric_json.hpp"
#include "topology/inventory/formats/fabric_text.hpp"
#include "topology/inventory/formats/ibnetdiscover.hpp"
#include "topology/inventory/formats/inventory_text.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/probe_matrix.hpp"
#include "topology/inventory/formats/probe_paths.hpp"
#include "topology/inventory/formats/write_nccl_xml.hpp"
#include "topology/pairs.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

struct ProbeOptions {
  MachineOptions machine;
  std::string format = "text";
  std::string picture;  // a file; empty for none
  bool expect = false;
  int hosts = 0;  // 0: those of the machine
  int gpus = 0;
  std::string timeout = "60";
};

/// The hosts asked for, all like the machine's.
Inventory resized(Inventory hosts, const ProbeOptions& options) {
  const Cluster& cluster = hosts.cluster;
  if (options.hosts == 0 && options.gpus == 0) return hosts;
  if (cluster.groups.size() > 1) {
    usage_error("the hosts of '{}' differ, so more like them are undefined; leave --hosts and --gpus out",
                cluster.name);
  }
  Cluster more = cluster;
  if (options.gpus > 0) {
    more = with_ranks(cluster, options.gpus);
  } else {
    more.groups = {{cluster.host(0), options.hosts}};
    more.validate();
  }
  Inventory result = inventory_of(std::move(more));
  result.asked = std::move(hosts.asked);
  return result;
}

/// The pairs of devices as rows, for programs and reports.
Table pairs_table(const Cluster& cluster) {
  Table table({{"", "host", "", Align::left},
               {"", "from", "", Align::left},
               {"", "to", "", Align::left},
               {"", "type", "", Align::left},
               {"", "bandwidth", "GB/s"},
               {"", "latency", "us"},
               {"", "nearest", "", Align::left},
               {"", "way", "", Align::left},
               {"", "reason", "", Align::left}});
  for (const HostGroup& group : cluster.groups) {
    const Machine& machine = group.machine;
    const auto add = [&](const std::vector<Pair>& pairs, bool nics) {
      for (const Pair& pair : pairs) {
        table.add_row({machine.name, machine.device_name(pair.from), machine.device_name(pair.to),
                       std::string(to_text(pair.type)),
                       pair.bandwidth.known() ? fmt::format("{}", pair.bandwidth.gigabytes_per_second()) : "",
                       pair.latency.value > 0 ? fmt::format("{}", pair.latency.value * 1e6) : "",
                       nics ? (pair.nearest ? "true" : "false") : "", way_text(machine, pair.way),
                       pair.reason});
      }
    };
    add(gpu_pairs(machine), false);
    add(nic_pairs(machine), true);
  }
  return table;
}

void print(const Inventory& all, const ProbeOptions& options) {
  const Inventory hosts = resized(all, options);
  const Cluster& cluster = hosts.cluster;
  if (!options.picture.empty()) {
    draw_hosts(options.machine, hosts, options.picture);
    return;
  }
  const auto expectation = [&] { return options.expect ? expected(cluster) : expected_bounds(cluster); };
  if (options.format == "json") {
    const JsonPart parts[] = {{"paths", probe_paths_json(cluster)}, {"expected", to_json(expectation())}};
    print_out("{}\n", probe_json(hosts, parts));
    return;
  }
  if (options.format == "nccl-xml") {
    if (options.expect) usage_error("--expect adds a table, for which nccl-xml has no place; leave it out");
    print_out("{}", write_nccl_xml(cluster));
    return;
  }
  if (options.format == "csv" || options.format == "markdown") {
    if (options.expect)
      usage_error("--expect is a table of its own; leave it out, or take --format text or json");
    const Table pairs = pairs_table(cluster);
    options.format == "csv" ? print_result(pairs.csv()) : print_out(pairs.markdown());
    return;
  }
  if (options.format == "matrix") {
    print_out("{}{}", probe_matrix(pictured(hosts)), not_pictured_text(hosts) + asked_text(hosts));
  } else if (options.format == "paths") {
    print_out("{}{}", probe_paths(pictured(hosts)), not_pictured_text(hosts) + asked_text(hosts));
  } else {
    print_out(inventory_text(hosts));
  }
  if (options.expect || options.format == "text") print_out("\n{}", to_text(expectation()));
}

/// What is asked for that a fabric without hosts does not have; empty when nothing is.
std::string of_hosts_alone(const ProbeOptions& options) {
  if (!options.picture.empty()) return "--picture";
  if (options.expect) return "--expect";
  if (options.hosts > 0) return "--hosts";
  if (options.gpus > 0) return "--gpus";
  if (!options.machine.assume.empty()) return "--assume";
  if (options.machine.rails) return "--rails";
  const bool of_fabrics = options.format == "text" || options.format == "json";
  return of_fabrics ? "" : "--format " + options.format;
}

/// The fabric alone, where no hosts are known.
ExitCode show_fabric(const ProbeOptions& options) {
  const std::string of_hosts = of_hosts_alone(options);
  if (!of_hosts.empty()) {
    usage_error(
        "{} is for hosts, and --fabric alone has none; give --from as well, or take --format text or json",
        of_hosts);
  }
  const FabricMap map = read_fabric(options.machine.fabric);
  print_out("{}", options.format == "json" ? fabric_json(map) : fabric_text(map));
  return ExitCode::ok;
}

/// One probe on each host of the job; rank 0 prints.
ExitCode probe_job(const ProbeOptions& options) {
  const Seconds timeout = parse_timeout(options.timeout);
  const std::string own = probe_own_host([] { return probe_this_machine(); }, timeout);
  return run_collectively(timeout, [&](World& world, Watchdog&) {
    on_root(world, [&] {
      if (!options.picture.empty()) check_picture(options.picture);
    });
    Inventory hosts = gather_probes(world, own);
    bool all_probed = true;
    on_root(world, [&] {
      all_probed = hosts.unprobed.empty();
      for (const UnprobedHost& host : hosts.unprobed) warn("{} could not be probed: {}", host.name, host.why);
      if (!hosts.cluster.groups.empty()) print(options.machine.on_fabric(std::move(hosts)), options);
    });
    return all_probed ? ExitCode::ok : ExitCode::not_available;
  });
}

ExitCode probe(const ProbeOptions& options) {
  const bool whole_job = options.machine.is_live() && launched_by_mpi();
  if (!whole_job && launched_rank() != 0) return ExitCode::ok;
  if (whole_job) return probe_job(options);
  parse_timeout(options.timeout);
  if (options.machine.is_live() && !options.machine.fabric.empty()) return show_fabric(options);
  if (!options.picture.empty()) check_picture(options.picture);
  Inventory hosts = options.machine.inventory();
  if (options.machine.is_live()) hosts.members.front().front().allowed = allowed_cores();
  print(hosts, options);
  return ExitCode::ok;
}

}  // namespace

void add_probe(CommandLine& line) {
  auto options = std::make_shared<ProbeOptions>();
  const Subcommand command = line.add_subcommand(
      "probe", "Show GPUs, NICs, and the links between them; under mpirun, of all hosts",
      "polyring probe --machine minsky --format matrix\n"
      "  polyring probe --machine minsky --expect --hosts 64\n"
      "  mpirun -np 16 --map-by node polyring probe --fabric ibnetdiscover.out --format json\n"
      "  polyring probe --from node*.json",
      [options] { return probe(*options); }, true);
  options->machine.add_to(command);
  command
      .add_option("--format", options->format,
                  "text (a tree), matrix (as nvidia-smi topo -m), paths (each pair's type and "
                  "why), csv or markdown (the same in rows), json, or nccl-xml (for NCCL_TOPO_FILE)")
      .names({"format", {"text", "matrix", "paths", "csv", "markdown", "json", "nccl-xml"}})
      .show_default();
  command.add_flag(
      "--expect", options->expect,
      "Also the allreduce bandwidth that good implementations reach, and each algorithm by the model");
  command
      .add_option("--picture", options->picture,
                  "Draw the hosts into a file, .svg or .png; an existing one is kept and .1, .2, … appended")
      .type_name("FILE")
      .excludes({"--format", "--expect"});
  command.add_option("--hosts", options->hosts, "So many hosts like this one")
      .type_name("N")
      .range(1, 1 << 20);
  command.add_option("--gpus,--ranks", options->gpus, "So many GPUs: a part of one host, or whole hosts")
      .type_name("N")
      .range(1, 1 << 24)
      .excludes({"--hosts"});
  command.add_option("-T,--timeout", options->timeout, "Of the probe of one host under mpirun")
      .show_default()
      .type_name("TIME");
}

}  // namespace polyring
