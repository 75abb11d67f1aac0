#include "bench/predict/conditions.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace polyring {
namespace {

/// `5us`, or `1us,5us` where it differs inside a host and between hosts.
void parse_overhead(const std::string& text, Costs& costs) {
  const std::size_t comma = text.find(',');
  const auto time = [](const std::string& part) { return parse_seconds(part, "--message-overhead"); };
  costs.message_in_host = time(text.substr(0, comma));
  costs.message_between_hosts =
      comma == std::string::npos ? costs.message_in_host : time(text.substr(comma + 1));
}

Costs costs_of(const ConditionOptions& options) {
  Costs costs;
  if (!options.overhead.empty()) parse_overhead(options.overhead, costs);
  if (!options.reduction.empty()) costs.reduction = parse_bandwidth(options.reduction, "--reduction-rate");
  return costs;
}

bool has_overhead(const Costs& costs) {
  return costs.message_in_host > Seconds{} || costs.message_between_hosts > Seconds{};
}

}  // namespace

void ConditionOptions::add_to(Subcommand command) {
  command
      .add_option("--sample-bytes", sample,
                  "What a sample takes up in storage, such as 110KB, or a data set: " + data_set_names())
      .type_name("SIZE");
  command.add_option("--filesystem", filesystem, "What the shared file system reads in all, such as 2.5TB/s")
      .type_name("RATE");
  command.add_option("--nvme", nvme, "What the NVMe of each host reads, such as 5GB/s").type_name("RATE");
  command
      .add_option("--jitter", jitter,
                  "Stragglers: the standard deviation of a GPU's computing time over its mean, such as 5%")
      .type_name("PART");
  command.add_option("--seed", seed, "Of the jitter's random numbers")
      .show_default()
      .not_negative()
      .needs("--jitter");
  command
      .add_option(
          "--message-overhead", overhead,
          "What a message takes beside its way, such as 2us, or 1us,5us inside a host and between hosts")
      .type_name("TIME[,TIME]");
  command
      .add_option("--reduction-rate", reduction,
                  "What a GPU can combine of what it receives, such as 200GB/s; by default any")
      .type_name("RATE");
}

Conditions ConditionOptions::resolve(const std::string& model) const {
  Conditions conditions;
  if (!jitter.empty())
    conditions.jitter =
        Jitter{.variation = parse_variation(jitter), .seed = static_cast<std::uint64_t>(seed)};
  conditions.costs = costs_of(*this);
  if (sample.empty() && filesystem.empty() && nvme.empty()) return conditions;
  InputPipeline& input = conditions.input.emplace();
  if (!sample.empty()) {
    input.sample = parse_sample_size(sample, "as stated by --sample-bytes");
  } else if (const auto known = sample_size_of_model(model)) {
    input.sample = *known;
  } else {
    usage_error("the size of a sample of {} is not known; give it by --sample-bytes, such as 4KiB", model);
  }
  if (!filesystem.empty()) input.filesystem = parse_bandwidth(filesystem, "--filesystem");
  if (!nvme.empty()) input.nvme = parse_bandwidth(nvme, "--nvme");
  return conditions;
}

std::vector<Input> inputs_of(const Conditions& conditions) {
  std::vector<Input> inputs;
  if (const auto& input = conditions.input) {
    inputs.push_back({"sample", to_text(input->sample.bytes), input->sample.source});
    if (input->filesystem.known())
      inputs.push_back({"file system, all hosts", to_text(input->filesystem), "as stated by --filesystem"});
    if (input->nvme.known()) inputs.push_back({"NVMe, a host", to_text(input->nvme), "as stated by --nvme"});
  }
  if (const auto& jitter = conditions.jitter) {
    inputs.push_back({"jitter of the computing time", fmt::format("{:g} %", 100 * jitter->variation),
                      "as stated by --jitter"});
  }
  const Costs& costs = conditions.costs;
  if (has_overhead(costs)) {
    inputs.push_back({"overhead of a message",
                      fmt::format("{} inside a host, {} between", to_text(costs.message_in_host),
                                  to_text(costs.message_between_hosts)),
                      "as stated by --message-overhead"});
  }
  if (costs.reduction.known()) {
    inputs.push_back({"reductions of a GPU", to_text(costs.reduction), "as stated by --reduction-rate"});
  }
  return inputs;
}

std::vector<std::string> notes_of(const Conditions& conditions) {
  std::vector<std::string> notes;
  if (const auto& input = conditions.input) {
    notes.push_back(fmt::format(
        "Data: {} bytes a sample ({}); {}{}{}; feed is what all hosts need for no step to wait.",
        input->sample.bytes.value, input->sample.source,
        input->filesystem.known() ? fmt::format("file system {} in all", to_text(input->filesystem)) : "",
        input->filesystem.known() && input->nvme.known() ? ", " : "",
        input->nvme.known()         ? fmt::format("NVMe {} a host", to_text(input->nvme))
        : input->filesystem.known() ? ""
                                    : "no limit stated"));
  }
  if (const auto& jitter = conditions.jitter) {
    notes.push_back(
        fmt::format("Jitter: lognormal, {:g} %, seed {}, {} steps; a step waits for the slowest GPU, and "
                    "iteration is the median.",
                    100 * jitter->variation, jitter->seed, jitter->steps));
  }
  const Costs& costs = conditions.costs;
  if (has_overhead(costs)) {
    notes.push_back(fmt::format("A message takes {} inside a host and {} between hosts beside its way.",
                                to_text(costs.message_in_host), to_text(costs.message_between_hosts)));
  }
  if (costs.reduction.known())
    notes.push_back(fmt::format("A GPU reduces {} of what it receives.", to_text(costs.reduction)));
  return notes;
}

StepTime with_stragglers(const Conditions& conditions, const CalmStep& calm, int ranks) {
  if (!conditions.jitter) return {calm.step.total(), calm.step.exposed_communication(), {}, {}, {}};
  const JitteredStep jittered = with_jitter(*conditions.jitter, ranks, calm.compute, calm.buckets,
                                            calm.overlap, calm.step, calm.interplay);
  return {jittered.median.total(), jittered.median.exposed_communication(), jittered.low, jittered.high, {}};
}

void add_feed(const Conditions& conditions, StepTime& time, Limit limit, double samples, int hosts) {
  if (!conditions.input) return;
  const auto fed = [&](Seconds without_waiting) {
    return feed(*conditions.input, without_waiting, limit, samples, hosts);
  };
  time.fed = fed(time.total);
  time.total = time.fed->time;
  if (time.low) time.low = fed(*time.low).time;
  if (time.high) time.high = fed(*time.high).time;
}

void set_step(ScaleRow& row, const StepTime& time) {
  row.iteration_ms = time.total.value * 1e3;
  row.exposed_comm_ms = time.exposed.value * 1e3;
  if (time.low) row.iteration_low_ms = time.low->value * 1e3;
  if (time.high) row.iteration_high_ms = time.high->value * 1e3;
  if (time.fed) {
    row.feed_GBps = time.fed->needed.gigabytes_per_second();
    row.limit = to_text(time.fed->limit);
  }
}

}  // namespace polyring
