// polyring scale: the speedup and efficiency that a machine's topology allows, beside what was published.
#include <fmt/format.h>

#include <memory>

#include "bench/command.hpp"
#include "bench/compute.hpp"
#include "bench/options.hpp"
#include "bench/record.hpp"
#include "bench/scaling.hpp"
#include "collectives/catalogue.hpp"
#include "reports/published.hpp"
#include "reports/tables.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/error.hpp"

namespace polyring {
namespace {

struct ScaleOptions {
  MachineOptions machine;
  PlanOptions plan;
  ComputeOptions compute;
  std::string kind = "float";
  std::string gpus = "4..256";
  std::string bucket = "none";
  bool overlap = false;
  std::string output;
};

/// Everything that the numbers rest on, each with its source.
std::vector<Input> inputs_of(const ScalingCase& scaling, const Compute& compute) {
  std::vector<Input> inputs{{"computation per step", to_text(compute.step.total()), compute.source},
                            {"gradients",
                             fmt::format("{} elements in {} tensors", scaling.model.total_elements(),
                                         scaling.model.gradients.size()),
                             scaling.model.summary}};
  for (const Citation& citation : scaling.machine.host(0).citations)
    inputs.push_back({scaling.name, citation.fact, citation.source});
  for (const Citation& citation : scaling.machine.fabric.citations)
    inputs.push_back({"fabric", citation.fact, citation.source});
  return inputs;
}

std::vector<std::string> notes_of(const ScalingCase& scaling, const Compute& compute,
                                  const std::vector<std::string>& algorithms) {
  int rails = 0;
  for (const Nic& nic : scaling.machine.host(0).nics) rails += nic.up() ? 1 : 0;
  std::vector<std::string> notes{
      fmt::format(
          "Modelled: {} NIC{} a host, batch {}, buckets {}, {}; nothing is fitted to the published figures.",
          rails, rails == 1 ? "" : "s", scaling.batch, to_text(scaling.policy),
          scaling.overlap ? "communication overlaps the backward pass" : "no overlap"),
      fmt::format("Computation: {}.", compute.source)};
  for (const std::string& algorithm : algorithms) {
    if (const auto* published = find_published(scaling.name, scaling.model.name, algorithm)) {
      notes.push_back(fmt::format("Published: {} ({}).", published->system, published->source));
    }
  }
  return notes;
}

/// NCCL and MPI choose their own plans.
void check_algorithms(const PlanOptions& plan) {
  bool all_vendors = true;
  for (const std::string& algorithm : plan.algorithms) {
    if (is_vendor(algorithm)) continue;
    find_algorithm(algorithm);
    all_vendors = false;
  }
  if (all_vendors && !plan.asks_nothing()) {
    usage_error(
        "nccl and mpi choose their own plans; leave --dims, --ddl-options, --patterns, --lanes and --chunk "
        "out");
  }
}

ExitCode scale(const ScaleOptions& options, const std::string& command) {
  if (!options.output.empty()) check_writable(options.output);
  ScalingCase scaling;
  scaling.machine = options.machine.load();
  scaling.name = options.machine.name(scaling.machine);
  scaling.model = make_model(options.compute.model);
  scaling.batch = options.compute.batch;
  scaling.policy = parse_bucket_policy(options.bucket);
  scaling.overlap = options.overlap;
  scaling.kind = parse_element_kind(options.kind);
  scaling.gpus = parse_counts(options.gpus, "--gpus");
  const Machine& host = scaling.machine.host(0);
  if (host.gpus.empty())
    usage_error("{} has no GPUs; choose a machine that has some by --machine or --from", host.name);
  const Compute compute = options.compute.resolve(scaling.model, host.gpus.front().model);
  scaling.compute = compute.step;
  check_algorithms(options.plan);

  std::vector<ScaleRow> rows;
  for (const std::string& algorithm : options.plan.algorithms) {
    const std::vector<ScaleRow> of_algorithm = model_scaling(scaling, algorithm, options.plan);
    rows.insert(rows.end(), of_algorithm.begin(), of_algorithm.end());
  }
  ResultFile result = describe_run(command, scaling.machine, nullptr);
  result.inputs = inputs_of(scaling, compute);
  for (const std::string& algorithm : options.plan.algorithms) {
    if (!is_vendor(algorithm)) continue;
    for (const Citation& citation : vendor_inputs(scaling, algorithm))
      result.inputs.push_back({algorithm, citation.fact, citation.source});
  }
  result.notes = notes_of(scaling, compute, options.plan.algorithms);
  fmt::print("{}\n", scale_table(rows).text());
  for (const std::string& note : result.notes) fmt::print("{}\n", note);
  result.rows = std::move(rows);
  save(options.output, result);
  return ExitCode::ok;
}

}  // namespace

void add_scale(CommandLine& line) {
  auto options = std::make_shared<ScaleOptions>();
  CLI::App& app =
      add_subcommand(line, "scale", "Model speedup and efficiency over GPUs, beside published figures",
                     "polyring scale --machine minsky --model resnet50 --gpus 4..256",
                     [options, &line] { return scale(*options, line.text); });
  options->machine.add_to(app);
  options->compute.add_to(app);
  options->plan.add_to(app, {"multi-ring", "ring", "halving-doubling", "tree", "parameter-server"}, true);
  auto* algorithm = app.get_option("--algorithm");
  algorithm->description(
      fmt::format("{}; nccl and mpi for what these would choose", algorithm->get_description()));
  app.add_option("--gpus", options->gpus, "GPU counts: a list, or a range that doubles")
      ->capture_default_str()
      ->type_name("LIST");
  app.add_option("--bucket", options->bucket, "none, per-tensor or fused:SIZE")->capture_default_str();
  app.add_flag("--overlap", options->overlap, "Communicate while the backward pass goes on");
  app.add_option("-d,--datatype", options->kind, "What gradients are sent as")
      ->capture_default_str()
      ->type_name("TYPE");
  app.add_option("-J,--output_file", options->output, "Write the result here, as JSON")->type_name("FILE");
}

}  // namespace polyring
