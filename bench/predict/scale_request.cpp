#include "bench/predict/scale_request.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "bench/cli/presentation.hpp"
#include "bench/predict/step_model.hpp"
#include "reports/published.hpp"
#include "reports/tables.hpp"
#include "simulation/in_network.hpp"
#include "topology/nic_protocol.hpp"
#include "topology/resize.hpp"
#include "topology/what_if.hpp"

namespace polyring {
namespace {

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

std::string megabytes(Bytes bytes) { return significant(static_cast<double>(bytes.value) / 1e6) + " MB"; }

/// What the memory of transformers is judged by; empty for other models.
std::string attention_note(const ScalingCase& scaling) {
  const std::vector<Block>& blocks = scaling.model.blocks;
  if (std::none_of(blocks.begin(), blocks.end(), [](const Block& block) { return block.kept.scores > 0; }))
    return "";
  if (scaling.attention == Attention::unfused)
    return "Memory: attention matrices are kept (unfused attention).";
  return "Memory: fused attention (FlashAttention, 2022) keeps no attention matrices; --unfused-attention "
         "counts "
         "them.";
}

/// How far the modelled times can be trusted, up to `gpus` GPUs.
std::vector<std::string> trust_notes(const ScaleRequest& request, int gpus) {
  if (request.scaling.framework != nullptr && !request.calibration)
    return {"polyring scale --published shows how often published training runs lie in such ranges."};
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

/// How gradients are exchanged in these rows.
std::string exchange_note(const std::vector<ScaleRow>& rows) {
  const ScaleRow& first = rows.front();
  const auto like_first = [&](const ScaleRow& row) {
    return row.bucket == first.bucket && row.overlap == first.overlap;
  };
  if (!std::ranges::all_of(rows, like_first)) return "buckets and overlap as each row says";
  return fmt::format("buckets {}, {}", first.bucket,
                     first.overlap ? "communication overlaps the backward pass" : "no overlap");
}

/// "buckets of 25 MiB beside the backward pass".
std::string exchange_text(const BucketPolicy& policy, bool overlap) {
  const std::string what = policy.kind == BucketPolicy::Kind::none ? "all gradients at once"
                           : policy.kind == BucketPolicy::Kind::per_tensor
                               ? "each gradient by itself"
                               : "buckets of " + to_text(policy.size);
  return fmt::format("{}, {} the backward pass", what, overlap ? "beside" : "after");
}

std::string framework_note(const ScalingCase& scaling) {
  if (scaling.framework == nullptr) {
    return fmt::format("Ideal: no cost of a framework, {}, links at their full rate.",
                       scaling.conditions.jitter ? "no stragglers but those of --jitter" : "no stragglers");
  }
  const Framework& framework = *scaling.framework;
  const std::string own = exchange_text(framework.bucket, framework.overlap);
  const std::string used = exchange_text(scaling.policy, scaling.overlap);
  const bool divides = scaling.strategy && !scaling.strategy->is_plain();
  return fmt::format("Framework {}: {}{}{}; --explain shows each cost with its range and source.{}",
                     framework.name, framework.summary, divides ? "" : "; " + used,
                     own == used || divides ? "" : fmt::format(" (as asked; its own: {})", own),
                     divides
                         ? fmt::format(" Rows that divide the model have the costs of {} that apply there.",
                                       scaling.framework_stated ? framework.name : "ddp")
                         : "");
}

/// What in-network reduction supposes, and where the machine's switches are not known to do it.
std::vector<std::string> in_network_notes(const Cluster& machine) {
  std::vector<std::string> notes{
      "In-network: switches reduce as fast as they receive; the bound of reductions at the GPUs does not "
      "hold."};
  const NicProtocol protocol = nic_protocol_of(machine.host(0));
  if (protocol != NicProtocol::infiniband) {
    notes.push_back(
        fmt::format("In-network: these NICs are {}'s, and switches of Ethernet mostly cannot reduce: "
                    "NVIDIA's SHARP needs "
                    "Quantum switches, which are InfiniBand's (NVIDIA SHARP Rev 3.13.0, General "
                    "Information), and SwitchML "
                    "programmable ones (p4lang/p4app-switchML: Tofino); read these rows as what switches "
                    "that reduce would "
                    "bring.",
                    title_of(protocol)));
  }
  return notes;
}

std::string baseline_note(const ScalingCase& scaling) {
  const BaselineChoice& baseline = scaling.baseline;
  if (!baseline.host) return "Efficiency and speedup are over one GPU that computes alone.";
  return fmt::format("Efficiency and speedup are over one whole host, with {}.",
                     baseline.algorithm.empty() ? "the row's own algorithm" : baseline.algorithm);
}

}  // namespace

std::vector<int> default_counts(int host_gpus, bool over_host) {
  constexpr int kFewest = 4;
  std::vector<int> counts;
  for (int count = kFewest; count <= kMostGpusByDefault; count *= 2) {
    if (count < host_gpus ? !over_host && host_gpus % count == 0 : count % host_gpus == 0)
      counts.push_back(count);
  }
  if (counts.size() > 1) return counts;
  counts.clear();
  for (int count = host_gpus; count <= std::max(kMostGpusByDefault, host_gpus); count *= 2)
    counts.push_back(count);
  return counts;
}

std::vector<int> counts_from(const std::vector<TrainRow>& measured) {
  std::set<int> counts;
  for (const TrainRow& row : measured) counts.insert(row.gpus);
  for (std::int64_t next = 2 * std::int64_t{*counts.rbegin()}; next <= kMostGpusByDefault; next *= 2)
    counts.insert(static_cast<int>(next));
  return {counts.begin(), counts.end()};
}

std::string_view framework_of(std::string_view machine) {
  if (machine == "minsky") return "caffe";
  if (machine == "big-basin") return "caffe2";
  for (const std::string_view old : {"ac922", "summit", "dgx1-p100", "p100-roce", "v100-roce"})
    if (machine == old) return "horovod-0.20";
  return "ddp";
}

BaselineChoice baseline_of(const std::string& text, const Framework& framework) {
  if (text.empty()) return {framework.over_host, {}};
  if (text == "gpu") return {};
  return {true, text == "host" ? "" : text};
}

std::optional<CostRange> computing_range(const Compute& compute) {
  if (!compute.estimated) return std::nullopt;
  const double middle = compute.step.total().value;
  return CostRange{
      &StepCosts::computing,
      "computing time of a step",
      compute.fastest.total().value / middle,
      1,
      compute.slowest.total().value / middle,
      fmt::format("{} to {}", to_text(compute.fastest.total()), to_text(compute.slowest.total())),
      compute.source};
}

std::vector<Input> inputs_of(const ScaleRequest& request) {
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
  const int most = *std::max_element(scaling.gpus.begin(), scaling.gpus.end());
  for (const std::string& algorithm : request.algorithms) {
    for (const CostRange& range : step_ranges(scaling, algorithm, with_ranks(scaling.machine, most)).ranges) {
      Input input{range.name, range.text, range.source};
      if (std::find(inputs.begin(), inputs.end(), input) == inputs.end()) inputs.push_back(std::move(input));
    }
  }
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

std::vector<std::string> notes_of(const ScaleRequest& request, const std::vector<ScaleRow>& rows) {
  const ScalingCase& scaling = request.scaling;
  const int gpus = std::ranges::max(rows, {}, &ScaleRow::gpus).gpus;
  const int rails = rails_of(scaling.machine.host(0));
  std::vector<std::string> notes{
      fmt::format("Modelled: {} NIC{} a host, {}, {}; nothing is fitted to the published figures.", rails,
                  rails == 1 ? "" : "s",
                  scaling.global_batch ? fmt::format("a global batch of {}", *scaling.global_batch)
                                       : fmt::format("batch {}", scaling.batch),
                  exchange_note(rows)),
      fmt::format("Computation: {}.", request.compute_source)};
  for (const std::string& sentence : request.asked) notes.push_back(sentence + ".");
  if (scaling.machine.host_count() > 1 && gpus > scaling.machine.ranks()) {
    notes.push_back(
        fmt::format("{} has {} hosts; rows of more than {} GPUs take further hosts to be like these.",
                    scaling.name, scaling.machine.host_count(), scaling.machine.ranks()));
  }
  if (std::string note = attention_note(scaling); !note.empty()) notes.push_back(std::move(note));
  notes.push_back(framework_note(scaling));
  notes.push_back(baseline_note(scaling));
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
    const std::vector<std::string> of_switches = in_network_notes(scaling.machine);
    notes.insert(notes.end(), of_switches.begin(), of_switches.end());
  }
  for (const std::string& algorithm : algorithms) {
    if (scaling.global_batch) break;  // what was published is weak scaling
    if (const auto* published = find_published(scaling.name, scaling.model.name, algorithm)) {
      notes.push_back(fmt::format("Published: {} ({}).", published->system, published->source));
    }
  }
  return notes;
}

namespace {

/// How the ranges of the rows' efficiency come about; empty where they have none.
std::string note_of_ranges(const std::vector<ScaleRow>& rows) {
  const ScaleRow* widest = nullptr;
  for (const ScaleRow& row : rows)
    if (row.widest_unknown && (widest == nullptr || row.gpus > widest->gpus)) widest = &row;
  if (widest == nullptr) return "";
  return fmt::format(
      "The range from ... to combines all that is not exactly known; at {} GPUs most of it comes from: {}.",
      widest->gpus, *widest->widest_unknown);
}

/// Why a row is faster than its baseline; empty where none is.
std::string note_of_more_than_ideal(const std::vector<ScaleRow>& rows) {
  for (const ScaleRow& row : rows) {
    if (row.efficiency <= 1 + 1e-6 || row.source != Source::modelled) continue;
    return fmt::format(
        "{} on {} GPUs is above 100 %: its steps wait {:.3g} ms for communication, and those of the baseline "
        "longer.",
        row.algorithm, row.gpus, row.exposed_comm_ms);
  }
  return "";
}

}  // namespace

std::vector<std::string> notes_of_rows(const std::vector<ScaleRow>& rows) {
  std::vector<std::string> notes;
  for (std::string note : {note_of_ranges(rows), note_of_more_than_ideal(rows)})
    if (!note.empty()) notes.push_back(std::move(note));
  return notes;
}

std::string explanation(const ResultFile& result) {
  const auto& rows = std::get<std::vector<ScaleRow>>(result.rows);
  const bool machines =
      std::ranges::any_of(rows, [&](const ScaleRow& row) { return row.machine != rows.front().machine; });
  Table limits({{"", "machine", "", Align::left},
                {"", "algorithm", "", Align::left},
                {"", "strategy", "", Align::left},
                {"", "gpus", "", Align::right},
                {"", "dims", "", Align::left},
                {"", "lanes", "", Align::right},
                {"", "chunk", "", Align::right},
                {"", "busy longest in the largest allreduce", "", Align::left}});
  for (const ScaleRow* row : in_scale_order(rows)) {
    limits.add_row({machines ? row->machine : "", row->algorithm, row->strategy.value_or(""),
                    fmt::format("{}", row->gpus), row->dims, fmt::format("{}", row->lanes),
                    row->chunk_bytes == 0 ? "whole" : to_text(Bytes{row->chunk_bytes}),
                    row->bottleneck.value_or("")});
  }
  Table sources(
      {{"", "input", "", Align::left}, {"", "value", "", Align::left}, {"", "source", "", Align::left}});
  for (const Input& input : result.inputs) sources.add_row({input.name, input.value, input.source});
  return fmt::format("{}\n{}\n", shown(limits), shown(sources));
}

}  // namespace polyring
