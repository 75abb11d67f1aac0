#include "bench/cli/options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/cli/assume.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/progress.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "models/model.hpp"
#include "simulation/in_network.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/inventory/formats/ibnetdiscover.hpp"
#include "topology/inventory/formats/machine_toml.hpp"
#include "topology/inventory/formats/read_inventory.hpp"
#include "topology/inventory/placement.hpp"
#include "topology/inventory/probe.hpp"
#include "topology/presets.hpp"
#include "topology/rails.hpp"

namespace polyring {

void MachineOptions::add_to(Subcommand command, bool several) {
  const std::vector<std::string> known = strings(preset_names());
  const Option machine = command.add_option(
      "--machine", machines,
      fmt::format("A machine known by name: {}; or FILE.toml, which describes one (docs/machines.md){}",
                  fmt::join(known, ", "), several ? "; may be repeated, to compare" : ""));
  machine.type_name("MACHINE").names({"machine", known, {}, is_machine_file});
  if (several) {
    machine.one_value_each_time();
  } else {
    machine.one_value();
  }
  command
      .add_option(
          "--from", files,
          "XML of hwloc, NCCL or RCCL, `nvidia-smi topo -m`, or JSON of `polyring probe`, one file or one "
          "for each host; without "
          "either, this machine")
      .type_name("FILE")
      .excludes({"--machine"});
  command.add_option("--sysfs", sysfs, "A copy of another machine's /sys")
      .type_name("DIR")
      .excludes({"--machine", "--from"});
  command
      .add_option(
          "--fabric", fabric,
          "Output of ibnetdiscover: places the hosts on their leaf switches; once for each network, where "
          "rails have their own")
      .type_name("FILE")
      .one_value_each_time()
      .excludes({"--machine"});
  command.add_option("--assume", assume, assume_help()).separated_by(',').type_name("KEY=RATE,…");
  command.add_option("--rails", rails, "Use only N NICs of each host, spread over its processors")
      .type_name("N");
  what_if.add_to(command);
}

Inventory MachineOptions::inventory() const {
  Progress progress(true);
  const auto notice = [&](const std::string& what) { progress.show(what); };
  const std::vector<std::filesystem::path> paths(files.begin(), files.end());
  return on_fabric(!machines.empty() ? inventory_of(machine_named(preset()))
                   : !files.empty()  ? read_inventory(paths)
                   : !sysfs.empty()  ? inventory_of(probe_recorded_sysfs(sysfs))
                                     : inventory_of(probe_this_machine(notice)));
}

Inventory MachineOptions::on_fabric(Inventory hosts) const {
  if (!fabric.empty()) hosts = placed(hosts, read_fabric(fabric));
  assume_rates(hosts, parse_assumed(assume));
  what_if.apply(hosts);
  if (rails) {
    add_asked(hosts, [&](const Machine& machine) { return rails_text(machine, *rails); });
    for (HostGroup& group : hosts.cluster.groups) group.machine = with_rails(group.machine, *rails);
  }
  return hosts;
}

Inventory MachineOptions::load() const {
  Inventory hosts = inventory();
  for (const std::string& note : hosts.notes) warn(note);
  return hosts;
}

std::string MachineOptions::name(const Cluster& cluster) const {
  return machines.empty() || is_machine_file(preset()) ? cluster.name : preset();
}

std::vector<std::string> modelled_algorithms() { return {"nccl", "mpi", std::string(kInNetwork)}; }

bool has_schedule(std::string_view algorithm) { return !is_vendor(algorithm) && algorithm != kInNetwork; }

void PlanOptions::add_to(Subcommand command, std::vector<std::string> default_algorithms, bool several,
                         Collective collective, const std::vector<std::string>& listed,
                         std::vector<std::string> unlisted) {
  algorithms = std::move(default_algorithms);
  std::vector<std::string> known = strings(algorithm_names(collective));
  const Option option =
      command.add_option("--algorithm", algorithms, fmt::format("{}", fmt::join(known, ", "))).show_default();
  known.insert(known.end(), listed.begin(), listed.end());
  option.names({"algorithm", std::move(known), std::move(unlisted)});
  if (several) {
    option.separated_by(',').type_name("NAME,…");
  } else {
    option.one_value().type_name("NAME");
  }
  command.add_option("--dims", dims, "The rank grid for multi-ring, hosts' ranks first: 4x8x8")
      .type_name("XxYx…");
  command
      .add_option("--ddl-options", ddl_options,
                  "The same in DDL's words, as in DDL_OPTIONS: \"-mode p:4x8x8\"")
      .type_name("TEXT")
      .excludes({"--dims"});
  command
      .add_option(
          "--patterns", patterns,
          fmt::format("For each dimension of multi-ring: {}", fmt::join(pattern_names(collective), ", ")))
      .separated_by(',')
      .type_name("NAME,…")
      .names({"pattern", strings(pattern_names(collective)), strings(pattern_names())});
  command.add_option("--lanes", lanes, "Rings side by side, each with its share of the payload")
      .type_name("N")
      .range(1, 1024);
  command.add_option("--chunk", chunk, "Pipelining unit of a lane, such as 1MiB").type_name("SIZE");
  command.add_option("--orders", orders, "Each lane's ring over the first dimension's ranks: 0-1-3-2/2-3-1-0")
      .type_name("0-1-…/…");
}

std::optional<std::vector<int>> PlanOptions::asked_dims() const {
  if (!dims.empty()) return parse_dims(dims);
  const DdlOptions ddl = parse_ddl_options(ddl_options);
  if (!ddl.dims.empty()) return ddl.dims;
  return std::nullopt;
}

std::string PlanOptions::ignored() const {
  const DdlOptions ddl = parse_ddl_options(ddl_options);
  return ddl.ignored.empty()
             ? ""
             : fmt::format("DDL's {} have no meaning here and are ignored", fmt::join(ddl.ignored, ", "));
}

void PlanOptions::refuse_without_schedule(std::string_view command) const {
  for (const std::string& algorithm : algorithms) {
    if (has_schedule(algorithm)) continue;
    usage_error(
        "polyring {1} knows no schedule of '{0}'; use polyring scale --algorithm {0}, which models it",
        algorithm, command);
  }
}

void PlanOptions::refuse_modelled() const {
  for (const std::string& algorithm : algorithms) {
    if (has_schedule(algorithm) || algorithm == "mpi" || algorithm == "nccl") continue;
    throw Error(ExitCode::not_available,
                fmt::format("{0} is not available: it reduces in switches, which no transport "
                            "here can; polyring scale --algorithm {0} models it",
                            algorithm));
  }
}

PlanConstraints PlanOptions::constraints(std::string_view algorithm) const {
  if (is_vendor(algorithm)) return {};
  const auto some = [&](bool Algorithm::*property) {
    const auto known = polyring::algorithms();
    return std::any_of(known.begin(), known.end(), [&](const Algorithm& a) {
      return a.*property && std::find(algorithms.begin(), algorithms.end(), a.name) != algorithms.end();
    });
  };
  if (!patterns.empty() && !some(&Algorithm::has_dims)) {
    usage_error(
        "--patterns is for the dimensions of multi-ring; name that algorithm, or leave --patterns out");
  }
  if (!orders.empty() && !some(&Algorithm::lanes_differ))
    usage_error("--orders is for rings; name multi-ring, ring or chain-tree, or leave --orders out");
  PlanConstraints constraints{asked_dims().value_or(std::vector<int>{}), {}, lanes, {}};
  if (has_schedule(algorithm)) {
    const Algorithm& found = find_algorithm(algorithm);
    if (found.has_dims) constraints.patterns = patterns;
    if (found.lanes_differ && !orders.empty()) constraints.orders = parse_orders(orders);
  }
  if (!chunk.empty()) {
    constraints.chunk = parse_bytes(chunk, "--chunk");
    if (constraints.chunk.value == 0)
      usage_error("--chunk 0 is impossible; give a size such as 1MiB, or leave it out");
  }
  return constraints;
}

Seconds parse_timeout(const std::string& text, const char* option) {
  const Seconds timeout = parse_seconds(text, option);
  constexpr Seconds kLeast{1e-9};
  constexpr Seconds kMost{1e6};
  if (timeout < kLeast || timeout > kMost)
    usage_error("{} {} is out of range; give 1 ns up to 1000000 s", option, text);
  return timeout;
}

namespace {

Option add_model(Subcommand command, auto& model, const std::string& what) {
  const std::vector<std::string> known = model_names();
  return command.add_option("--model", model, fmt::format("{}: {}", what, fmt::join(known, ", ")))
      .type_name("NAME")
      .names({"model", known});
}

}  // namespace

Option add_model_option(Subcommand command, std::string& model, const std::string& what) {
  return add_model(command, model, what);
}

Option add_model_option(Subcommand command, std::optional<std::string>& model, const std::string& what) {
  return add_model(command, model, what);
}

void add_timeout_option(Subcommand command, std::string& timeout) {
  command.add_option("-T,--timeout", timeout, "Give up when nothing happens for so long").show_default();
}

std::vector<int> parse_counts(const std::string& text, const std::string& what, Range range) {
  const auto number = [&](std::string_view part) {
    int value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc{} || end != part.data() + part.size() || value < 1) {
      usage_error("{} '{}' is not a list of numbers above 0; write it as 4,8,16 or 4..256,1024", what, text);
    }
    return value;
  };
  std::vector<int> counts;
  const auto add = [&](std::int64_t count) {
    if (counts.size() == kMostCounts)
      usage_error("{} '{}' is of more than {} numbers; give fewer", what, text, kMostCounts);
    counts.push_back(static_cast<int>(count));
  };
  for (const std::string& part : split(text.empty() ? "," : text, ',')) {
    const std::size_t dots = part.find("..");
    const int first = number(std::string_view(part).substr(0, dots));
    if (dots == std::string::npos) {
      add(first);
      continue;
    }
    const int last = number(std::string_view(part).substr(dots + 2));
    if (first > last)
      usage_error("{} '{}' ends before it begins; write the smaller number first", what, part);
    for (std::int64_t count = first; count < last; count = range == Range::doubles ? 2 * count : count + 1)
      add(count);
    add(last);
  }
  return counts;
}

void add_partials_option(Subcommand command, std::string& partials) {
  command
      .add_option(
          "--partials", partials,
          "How partial sums of half and bfloat16 travel between the steps of a plan. float32: the whole is "
          "rounded once; same: as what is summed, rounded at each step, in fewer bytes")
      .show_default()
      .names({"way of partials", {"float32", "same"}});
}

Partials parse_partials(const std::string& text) {
  return text == "same" ? Partials::in_output : Partials::apart;
}

void PayloadOptions::add_to(Subcommand command, const std::string& default_op) {
  op_text = default_op;
  command.add_option("-d,--datatype", kind_text, "float, double, half, bfloat16, int32 or int64")
      .show_default()
      .type_name("TYPE")
      .names({"type", element_kind_names()});
  if (default_op.empty()) {
    op_text = "sum";  // unused: nothing is reduced
    return;
  }
  command.add_option("-o,--op", op_text, "sum, prod, min, max or avg")
      .show_default()
      .type_name("OP")
      .names({"operation", reduce_op_names()});
}

}  // namespace polyring
