// polyring probe: what this machine, a file or a preset is.
#include <fmt/format.h>

#include <memory>

#include "bench/command.hpp"
#include "bench/options.hpp"
#include "topology/formats/probe_json.hpp"
#include "topology/formats/probe_matrix.hpp"
#include "topology/formats/probe_text.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

struct ProbeOptions {
  MachineOptions machine;
  std::string format = "text";
};

ExitCode probe(const ProbeOptions& options) {
  const Cluster cluster = options.machine.load();
  if (options.format == "json") {
    fmt::print("{}\n", probe_json(cluster));
  } else if (options.format == "matrix") {
    fmt::print("{}", probe_matrix(cluster));
  } else {
    fmt::print("{}", probe_text(cluster));
  }
  return ExitCode::ok;
}

}  // namespace

void add_probe(CommandLine& line) {
  auto options = std::make_shared<ProbeOptions>();
  CLI::App& app = add_subcommand(line, "probe", "Show GPUs, NICs, and the links between them",
                                 "polyring probe --machine minsky --format matrix",
                                 [options] { return probe(*options); });
  options->machine.add_to(app);
  app.add_option("--format", options->format, "text (a tree), matrix (as nvidia-smi topo -m) or json")
      ->check(CLI::IsMember({"text", "matrix", "json"}))
      ->capture_default_str();
}

}  // namespace polyring
