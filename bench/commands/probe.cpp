// polyring probe: what this machine, a file or a preset is.
#include <fmt/format.h>

#include <memory>

#include "bench/command.hpp"
#include "bench/expected.hpp"
#include "bench/options.hpp"
#include "bench/picture.hpp"
#include "reports/picture.hpp"
#include "topology/error.hpp"
#include "topology/formats/probe_dot.hpp"
#include "topology/formats/probe_json.hpp"
#include "topology/formats/probe_matrix.hpp"
#include "topology/formats/probe_paths.hpp"
#include "topology/formats/probe_text.hpp"
#include "topology/formats/write_nccl_xml.hpp"
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
};

/// The hosts asked for, all like the machine's.
Cluster load(const ProbeOptions& options) {
  Cluster cluster = options.machine.load();
  if (options.hosts == 0 && options.gpus == 0) return cluster;
  if (cluster.groups.size() > 1) {
    usage_error("the hosts of '{}' differ, so more like them are undefined; leave --hosts and --gpus out",
                cluster.name);
  }
  return with_ranks(cluster, options.gpus > 0 ? options.gpus : options.hosts * cluster.host(0).ranks());
}

ExitCode probe(const ProbeOptions& options) {
  if (!options.picture.empty()) check_picture(options.picture);
  const Cluster cluster = load(options);
  if (!options.picture.empty()) {
    draw_hosts(options.machine, cluster, options.picture);
    return ExitCode::ok;
  }
  const auto expectation = [&] { return options.expect ? expected(cluster) : expected_bounds(cluster); };
  if (options.format == "json") {
    const JsonPart parts[] = {{"paths", probe_paths_json(cluster)}, {"expected", to_json(expectation())}};
    fmt::print("{}\n", probe_json(cluster, parts));
    return ExitCode::ok;
  }
  if (options.format == "dot" || options.format == "nccl-xml") {
    if (options.expect)
      usage_error("--expect adds a table, for which {} has no place; leave it out", options.format);
    fmt::print("{}", options.format == "dot" ? probe_dot(cluster) : write_nccl_xml(cluster));
    return ExitCode::ok;
  }
  if (options.format == "matrix") {
    fmt::print("{}", probe_matrix(cluster));
  } else if (options.format == "paths") {
    fmt::print("{}", probe_paths(cluster));
  } else {
    fmt::print("{}", probe_text(cluster));
  }
  if (options.expect || options.format == "text") fmt::print("\n{}", to_text(expectation()));
  return ExitCode::ok;
}

}  // namespace

void add_probe(CommandLine& line) {
  auto options = std::make_shared<ProbeOptions>();
  CLI::App& app = add_subcommand(line, "probe", "Show GPUs, NICs, and the links between them",
                                 "polyring probe --machine minsky --format matrix\n"
                                 "  polyring probe --machine minsky --expect --hosts 64",
                                 [options] { return probe(*options); });
  options->machine.add_to(app);
  auto* format = app.add_option("--format", options->format,
                                "text (a tree), matrix (as nvidia-smi topo -m), paths (each pair's type and "
                                "why), json, dot (for Graphviz) or nccl-xml (for NCCL_TOPO_FILE)")
                     ->check(CLI::IsMember({"text", "matrix", "paths", "json", "dot", "nccl-xml"}))
                     ->capture_default_str();
  auto* expect = app.add_flag("--expect", options->expect,
                              "Also the allreduce bandwidth that each algorithm should reach");
  app.add_option("--picture", options->picture,
                 "Draw the hosts into a file, .svg or .png; an existing one is kept and .1, .2, … appended")
      ->type_name("FILE")
      ->excludes(format)
      ->excludes(expect);
  auto* hosts = app.add_option("--hosts", options->hosts, "So many hosts like this one")
                    ->type_name("N")
                    ->check(CLI::Range(1, 1 << 20));
  app.add_option("--gpus", options->gpus, "So many GPUs: a part of one host, or whole hosts")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 24))
      ->excludes(hosts);
}

}  // namespace polyring
