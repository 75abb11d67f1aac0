// polyring scale: the speedup and efficiency that a machine's topology allows, beside what was published.
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/commands/command.hpp"
#include "bench/predict/compare_published.hpp"
#include "bench/predict/compute.hpp"
#include "bench/predict/from_run.hpp"
#include "bench/predict/scaling.hpp"
#include "bench/predict/strategies.hpp"
#include "bench/record/calibration_file.hpp"
#include "bench/record/record.hpp"
#include "bench/record/result_file.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "reports/csv.hpp"
#include "reports/published.hpp"
#include "reports/tables.hpp"
#include "simulation/in_network.hpp"

namespace polyring {
namespace {

constexpr const char* kDefaultGpus = "4..256";
constexpr int kMostByDefault = 256;
constexpr int kMostGlobalBatch = 1 << 30;

struct ScaleOptions {
  MachineOptions machine;
  PlanOptions plan;
  ComputeOptions compute;
  ConditionOptions conditions;
  std::string kind = "float";
  std::string partials = "float32";
  std::string gpus;  // empty: kDefaultGpus, or what a strategy's factors multiply to
  std::vector<std::string> strategies;
  std::optional<int> micro_batches;
  std::string scaling;              // empty: as global_batch says
  std::optional<int> global_batch;  // nothing: weak scaling, or the batches of one host
  std::string bucket = "none";
  bool overlap = false;
  bool explain = false;
  bool published = false;
  std::vector<std::string> runs;
  std::string calibration;
  bool algorithms_given = false;
  std::string output;
};

/// A table that is wanted, and what its numbers rest on.
struct Request {
  ScalingCase scaling;
  std::vector<std::string> algorithms;
  std::string compute_source;
  std::string compute_citations;  // as in a Compute
  std::optional<CalibrationRecord> calibration;
  std::string measured;              // what was, in a sentence; empty when nothing was
  std::vector<std::string> asked{};  // as in an Inventory
};

/// What is the same at all GPU counts: nothing, but a GPU's batch, under weak scaling.
std::optional<int> global_batch_of(const ScaleOptions& options, const Machine& host, int of_gpu) {
  if (options.scaling == "weak" && options.global_batch)
    usage_error("--global-batch is for strong scaling; leave it out, or --scaling weak");
  if (options.global_batch || options.scaling != "strong") return options.global_batch;
  const std::int64_t batch = std::int64_t{of_gpu} * host.ranks();
  if (batch > kMostGlobalBatch)
    usage_error("--batch {} for each of {} GPUs is more than {} in all; give a smaller one", of_gpu,
                host.ranks(), kMostGlobalBatch);
  return static_cast<int>(batch);
}

std::vector<Input> inputs_of(const CalibrationRecord& record) {
  std::vector<Input> inputs;
  const std::string source =
      fmt::format("polyring calibrate of {}, {}", record.created, to_text(record.source));
  for (const LinkFit& fit : record.calibration.links) {
    inputs.push_back({"calibration",
                      fmt::format("{}: {} and {}", to_text(fit.link), to_text(fit.latency),
                                  fit.bandwidth.known()
                                      ? to_text(fit.bandwidth)
                                      : fmt::format("{:.1f} % of the stated bandwidth", 100 * fit.share)),
                      source});
  }
  return inputs;
}

/// Everything that the numbers rest on, each with its source.
std::vector<Input> inputs_of(const Request& request) {
  const ScalingCase& scaling = request.scaling;
  std::vector<Input> inputs{{scaling.global_batch ? fmt::format("computation of a batch of {}", scaling.batch)
                                                  : "computation per step",
                             to_text(scaling.compute.total()), request.compute_source},
                            {"gradients",
                             fmt::format("{} elements in {} tensors", scaling.model.total_elements(),
                                         scaling.model.gradients.size()),
                             scaling.model.summary}};
  if (!request.compute_citations.empty())
    inputs.push_back({"utilisation", "published results", request.compute_citations});
  const std::vector<Input> of_conditions = inputs_of(scaling.conditions);
  inputs.insert(inputs.end(), of_conditions.begin(), of_conditions.end());
  for (const Citation& citation : scaling.machine.host(0).citations)
    inputs.push_back({scaling.name, citation.fact, citation.source});
  for (const Citation& citation : scaling.machine.fabric.citations)
    inputs.push_back({"fabric", citation.fact, citation.source});
  for (const std::string& algorithm : request.algorithms) {
    for (const Citation& citation : algorithm_inputs(scaling, algorithm))
      inputs.push_back({algorithm, citation.fact, citation.source});
  }
  if (request.calibration) {
    const std::vector<Input> of_calibration = inputs_of(*request.calibration);
    inputs.insert(inputs.end(), of_calibration.begin(), of_calibration.end());
  }
  return inputs;
}

std::string megabytes(Bytes bytes) { return significant(static_cast<double>(bytes.value) / 1e6) + " MB"; }

/// How far the modelled times can be trusted, up to `gpus` GPUs.
std::vector<std::string> trust_notes(const Request& request, int gpus) {
  if (!request.calibration) return {std::string(kNotValidated)};
  const Calibration& calibration = request.calibration->calibration;
  const CalibrationRange& range = calibration.range;
  std::vector<std::string> notes{note_of(*request.calibration)};
  if (gpus > range.most_ranks) {
    notes.push_back(fmt::format(
        "Beyond {} ranks nothing was measured: there these errors are not known to hold.", range.most_ranks));
  }
  const auto [least, largest] = allreduce_sizes(request.scaling);
  if (least < range.least || range.largest < largest) {
    notes.push_back(fmt::format(
        "Allreduces of {} to {} were measured, and gradients are exchanged in {}: there these errors are not "
        "known to hold either.",
        to_text(range.least), to_text(range.largest),
        least == largest ? megabytes(least) : fmt::format("{} to {}", megabytes(least), megabytes(largest))));
  }
  const std::vector<LinkClass> others = not_fitted(request.scaling.machine, calibration, gpus);
  if (!others.empty()) {
    std::vector<std::string_view> names;
    for (const LinkClass link : others) names.push_back(to_text(link));
    notes.push_back(fmt::format("Not measured, but as stated: {}.", fmt::join(names, ", ")));
  }
  return notes;
}

std::vector<std::string> notes_of(const Request& request, int gpus) {
  const ScalingCase& scaling = request.scaling;
  const int rails = rails_of(scaling.machine.host(0));
  std::vector<std::string> notes{
      fmt::format(
          "Modelled: {} NIC{} a host, {}, buckets {}, {}; nothing is fitted to the published figures.", rails,
          rails == 1 ? "" : "s",
          scaling.global_batch ? fmt::format("a global batch of {}", *scaling.global_batch)
                               : fmt::format("batch {}", scaling.batch),
          to_text(scaling.policy),
          scaling.overlap ? "communication overlaps the backward pass" : "no overlap"),
      fmt::format("Computation: {}.", request.compute_source)};
  for (const std::string& sentence : request.asked) notes.push_back(sentence + ".");
  if (!request.measured.empty()) notes.push_back(request.measured);
  const std::vector<std::string> trust = trust_notes(request, gpus);
  notes.insert(notes.end(), trust.begin(), trust.end());
  if (scaling.global_batch) {
    notes.push_back(fmt::format(
        "Strong scaling: a sample is taken to compute as fast as in a batch of {}; that real GPUs compute "
        "smaller batches less efficiently is not modelled.",
        scaling.batch));
  }
  const auto [least, largest] = allreduce_sizes(scaling);
  if (gpus > kMostPlannedForEach && least != largest) {
    notes.push_back(
        fmt::format("Above {} GPUs buckets of all sizes have the plan of the largest.", kMostPlannedForEach));
  }
  const std::vector<std::string> of_conditions = notes_of(scaling.conditions);
  notes.insert(notes.end(), of_conditions.begin(), of_conditions.end());
  const std::vector<std::string>& algorithms = request.algorithms;
  if (std::find(algorithms.begin(), algorithms.end(), kInNetwork) != algorithms.end()) {
    notes.push_back(
        "In-network: switches reduce as fast as they receive; the bound of reductions at the GPUs does not "
        "hold.");
  }
  for (const std::string& algorithm : algorithms) {
    if (scaling.global_batch) break;  // what was published is weak scaling
    if (const auto* published = find_published(scaling.name, scaling.model.name, algorithm)) {
      notes.push_back(fmt::format("Published: {} ({}).", published->system, published->source));
    }
  }
  return notes;
}

/// What each row's largest allreduce waits for, and where every number that goes in was read.
std::string explanation(const ResultFile& result) {
  Table limits({{"", "algorithm", "", Align::left},
                {"", "gpus", "", Align::right},
                {"", "dims", "", Align::left},
                {"", "lanes", "", Align::right},
                {"", "chunk", "", Align::right},
                {"", "busy longest in the largest allreduce", "", Align::left}});
  for (const ScaleRow& row : std::get<std::vector<ScaleRow>>(result.rows)) {
    limits.add_row({row.algorithm, fmt::format("{}", row.gpus), row.dims, fmt::format("{}", row.lanes),
                    row.chunk_bytes == 0 ? "whole" : to_text(Bytes{row.chunk_bytes}),
                    row.bottleneck.value_or("")});
  }
  Table sources(
      {{"", "input", "", Align::left}, {"", "value", "", Align::left}, {"", "source", "", Align::left}});
  for (const Input& input : result.inputs) sources.add_row({input.name, input.value, input.source});
  return fmt::format("{}\n{}\n", shown(limits), shown(sources));
}

/// The rows as they were asked for, with `text` where that is for people, and the notes.
void show(const ResultFile& result, const std::string& text) {
  if (format() == Format::csv) {
    print_result(csv_head(result.rows) + csv_body(result.rows));
  } else if (format() != Format::json) {
    print_out(text);
  }
  for (const std::string& note : result.notes) print_remark(note + "\n");
}

ExitCode show_published(const ScaleOptions& options, const std::string& command) {
  const std::vector<PublishedComparison> comparisons = compare_published();
  ResultFile result = describe_run(command, nullptr, nullptr);
  std::vector<ScaleRow> rows;
  std::string texts;
  for (const PublishedComparison& comparison : comparisons) {
    texts += text(comparison) + "\n";
    for (const Modelled& modelled : comparison.modelled)
      rows.insert(rows.end(), modelled.rows.begin(), modelled.rows.end());
  }
  result.rows = std::move(rows);
  result.notes = comparison_notes();
  show(result, texts);
  save(options.output, result);
  return ExitCode::ok;
}

/// For each strategy the same case, at the GPU counts that are asked for, or that it is for.
std::vector<ScalingCase> by_strategy(const ScalingCase& scaling, const ScaleOptions& options) {
  std::vector<ScalingCase> cases;
  for (const std::string& text : options.strategies) {
    ScalingCase& at = cases.emplace_back(scaling);
    at.strategy = parse_strategy(text);
    if (options.gpus.empty() && at.strategy->replicas > 0) {
      const std::int64_t product = at.strategy->replica_gpus() * at.strategy->replicas;
      at.gpus = parse_counts(std::to_string(product), "the strategy's GPUs");
    }
  }
  const auto pipelined = [](const ScalingCase& at) { return at.strategy->pipeline > 1; };
  if (options.micro_batches && std::none_of(cases.begin(), cases.end(), pipelined))
    usage_error("--micro-batches are a pipeline's; give a --strategy with pipeline, or leave them out");
  if (cases.empty()) cases.push_back(scaling);
  return cases;
}

/// NCCL and MPI choose their own plans, and where the network reduces, hosts are the dimension.
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

/// The measured counts, and then twice as many again and again.
std::vector<int> counts_from(const std::vector<TrainRow>& measured) {
  std::set<int> counts;
  for (const TrainRow& row : measured) counts.insert(row.gpus);
  for (std::int64_t next = 2 * std::int64_t{*counts.rbegin()}; next <= kMostByDefault; next *= 2)
    counts.insert(static_cast<int>(next));
  return {counts.begin(), counts.end()};
}

Request request_from_runs(const ScaleOptions& options) {
  MeasuredTraining training = measured_training(options.runs);
  if (options.calibration.empty()) {
    usage_error(
        "of the links of these hosts too little is known to model more of them; fit them with polyring "
        "calibrate, and give --calibration");
  }
  Request request;
  request.measured = note_of(training, options.runs);
  request.scaling = std::move(training.scaling);
  request.algorithms = options.algorithms_given ? options.plan.algorithms : training.algorithms;
  request.compute_source = training.compute_source;
  if (options.gpus.empty()) request.scaling.gpus = counts_from(request.scaling.measured);
  return request;
}

Request request_of_machine(const ScaleOptions& options) {
  Request request;
  ScalingCase& scaling = request.scaling;
  Inventory hosts = options.machine.load();
  scaling.machine = std::move(hosts.cluster);
  request.asked = std::move(hosts.asked);
  scaling.name = options.machine.name(scaling.machine);
  scaling.model = make_model(options.compute.model);
  scaling.policy = parse_bucket_policy(options.bucket);
  scaling.overlap = options.overlap;
  if (scaling.overlap && scaling.policy.kind == BucketPolicy::Kind::none) {
    usage_error(
        "without --bucket all gradients are reduced at once after the backward pass, and nothing is left to "
        "--overlap; add --bucket per-tensor, or fused:64MiB");
  }
  const Machine& host = scaling.machine.host(0);
  if (host.gpus.empty())
    usage_error("{} has no GPUs; choose a machine that has some by --machine or --from", host.name);
  const Gpu& gpu = host.gpus.front();
  const Compute compute = options.compute.resolve(scaling.model, {gpu.model, gpu.memory});
  scaling.compute = compute.step;
  scaling.batch = compute.batch;
  scaling.global_batch = global_batch_of(options, host, compute.batch);
  request.compute_source = compute.source;
  request.compute_citations = compute.citations;
  if (!compute.choice.empty()) request.asked.push_back(compute.choice);
  request.algorithms = options.plan.algorithms;
  return request;
}

Request request_of(const ScaleOptions& options) {
  Request request = options.runs.empty() ? request_of_machine(options) : request_from_runs(options);
  ScalingCase& scaling = request.scaling;
  scaling.kind = parse_element_kind(options.kind);
  scaling.partials = parse_partials(options.partials);
  scaling.conditions = options.conditions.resolve(scaling.model.name);
  if (scaling.gpus.empty())
    scaling.gpus = parse_counts(options.gpus.empty() ? kDefaultGpus : options.gpus, "--gpus");
  scaling.micro_batches = options.micro_batches;
  check_algorithms(request.algorithms, options.plan, options.conditions.ask_for_costs());
  if (!options.calibration.empty()) {
    request.calibration = read_calibration(options.calibration, scaling.machine);
    scaling.machine = calibrated(std::move(scaling.machine), request.calibration->calibration);
    scaling.spread = request.calibration->calibration.error().spread;
    scaling.network_fitted = request.calibration->calibration.find(LinkClass::network) != nullptr;
  }
  return request;
}

ExitCode scale(const ScaleOptions& options, const std::string& command) {
  check_output(options.output);
  if (options.published) return show_published(options, command);
  const Request request = request_of(options);
  std::vector<ScaleRow> rows;
  const std::vector<ScalingCase> cases = by_strategy(request.scaling, options);
  for (const std::string& algorithm : request.algorithms) {
    for (const ScalingCase& at : cases) {
      const std::vector<ScaleRow> of_case = model_scaling(at, algorithm, options.plan);
      rows.insert(rows.end(), of_case.begin(), of_case.end());
    }
  }
  ResultFile result = describe_run(command, &request.scaling.machine, nullptr);
  result.inputs = inputs_of(request);
  int most = 0;
  for (const ScaleRow& row : rows) most = std::max(most, row.gpus);
  result.notes = notes_of(request, most);
  for (const ScalingCase& at : cases) {
    if (!at.strategy) continue;
    const int gpus = *std::max_element(at.gpus.begin(), at.gpus.end());
    result.notes.push_back(note_of(with_share(at, gpus), for_gpus(*at.strategy, gpus)));
  }
  result.rows = std::move(rows);
  show(result, shown(scale_table(std::get<std::vector<ScaleRow>>(result.rows))) + "\n" +
                   (options.explain ? explanation(result) : ""));
  save(options.output, result);
  return ExitCode::ok;
}

/// How the samples and the work of a step are divided among GPUs.
void add_division(Subcommand command, ScaleOptions& options) {
  command
      .add_option("--scaling", options.scaling,
                  "What is the same at all counts: weak, the batch of a GPU; strong, that of all together")
      .show_default("weak")
      .names({"scaling", {"weak", "strong"}});
  command
      .add_option("--global-batch", options.global_batch,
                  "Strong scaling with so many samples per step; by default --batch for each GPU of one host")
      .range(1, kMostGlobalBatch)
      .type_name("N");
  command
      .add_option(
          "--strategy", options.strategies,
          "How work is divided: data, pipeline, intra-model, inter-model, such as data=64,pipeline=4; "
          "without data, GPUs that are left make replicas; may be repeated")
      .one_value_each_time()
      .type_name("NAME=N,…");
  command.add_option("--micro-batches", options.micro_batches, "Of a pipeline; by default 4 for each stage")
      .range(1, 1 << 20)
      .type_name("N");
}

}  // namespace

void add_scale(CommandLine& line) {
  auto options = std::make_shared<ScaleOptions>();
  const Subcommand command = line.add_subcommand(
      "scale", "Model speedup and efficiency over GPUs, beside published figures",
      "polyring scale --machine minsky --model resnet50 --gpus 4..256\n"
      "  polyring scale --machine minsky --algorithm multi-ring,in-network --global-batch 8192\n"
      "  polyring scale --machine summit --batch 96 --algorithm multi-ring --gpus 6,1536,27648 "
      "--filesystem 500GB/s --jitter 5%\n"
      "  polyring scale --machine dgx-a100 --model gpt2-xl --batch 8 --compute-ms 900 --gpus 8,64 "
      "--algorithm "
      "multi-ring --strategy pipeline=4 --strategy intra-model=8\n"
      "  polyring scale --from-run 2hosts.json --from-run 4hosts.json --calibration calibration.json",
      [options, &line] {
        options->algorithms_given = line.given("--algorithm");
        return scale(*options, line.text());
      });
  options->machine.add_to(command);
  options->compute.add_to(command);
  options->plan.add_to(command, {"multi-ring", "ring", "halving-doubling", "tree", "parameter-server"}, true,
                       Collective::allreduce, modelled_algorithms());
  command.option("--algorithm")
      .append_description("; nccl and mpi for what these would choose; in-network for switches that reduce");
  command
      .add_option(
          "--gpus,--ranks", options->gpus,
          "GPU counts: a list whose parts may be ranges that double: 4..256,1000; by default those of "
          "--strategy, if it has all")
      .show_default(kDefaultGpus)
      .type_name("LIST");
  command.add_option("--bucket", options->bucket, "none, per-tensor or fused:SIZE").show_default();
  command.add_flag("--overlap", options->overlap, "Communicate while the backward pass goes on");
  add_division(command, *options);
  options->conditions.add_to(command);
  command.add_option("-d,--datatype", options->kind, "What gradients are sent as")
      .show_default()
      .type_name("TYPE")
      .names({"type", element_kind_names()});
  add_partials_option(command, options->partials);
  command
      .add_option("--from-run", options->runs,
                  "Results of polyring train: what was measured, and from it more hosts like "
                  "those; may be repeated")
      .one_value_each_time()
      .type_name("FILE")
      .excludes({"--machine", "--from", "--sysfs", "--fabric", "--assume", "--rails", "--model", "--batch",
                 "--compute-ms", "--gpu", "--precision", "--utilisation", "--bucket", "--overlap",
                 "--strategy", "--scaling", "--global-batch"});
  command
      .add_option("--calibration", options->calibration,
                  "Links as polyring calibrate found them, in place of what is stated; with its error")
      .type_name("FILE");
  command.add_flag("--published", options->published,
                   "Every published result beside the model, for each combination of what was not "
                   "published: rails, overlap, batch");
  command.add_flag("--explain", options->explain,
                   "Also what limits each row, and every input with its source");
  add_output_option(command, options->output);
  command.option("--published").excludes_all_but({"--output_file"});
}

}  // namespace polyring
