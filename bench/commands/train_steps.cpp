#include "bench/commands/train_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/measure/gpu_step.hpp"
#include "bench/measure/host_piece.hpp"
#include "bench/measure/payload.hpp"
#include "bench/measure/timeline.hpp"
#include "bench/record/emulation.hpp"
#include "bench/session/collective.hpp"
#include "bench/session/memory_check.hpp"

namespace polyring {
namespace {

/// Of a GPU's time: more is worth a sentence.
constexpr double kMuchCopying = 0.1;

/// What copies between host and GPU are of all that the GPU did.
double copies_share(const TrainRow& row) {
  double share = 0;
  for (const GpuShare& of : row.gpu_profile.value_or(std::vector<GpuShare>{}))
    if (is_host_copy(of.activity)) share += of.share.value_or(0);
  return share;
}

/// What is computed is measured, too: alone, and beside the communication.
void set_gpu_times(TrainRow& row, const TrainingSteps& alone, const TrainingSteps& steps) {
  std::vector<double> exposed_ms;
  for (std::size_t i = 0; i < steps.total_ms.size(); ++i)
    exposed_ms.push_back(std::max(0.0, steps.total_ms[i] - steps.compute_ms[i]));
  row.compute_ms = timing(alone.compute_ms).median;
  row.compute_slowdown = timing(steps.compute_ms).median / row.compute_ms;
  row.communication_ms = timing(steps.communication_ms).median;
  row.exposed_comm_ms = timing(exposed_ms).median;
  if (!steps.profile.empty()) row.gpu_profile = steps.profile;
}

}  // namespace

void TrainOptions::check() const {
  const GpuOptions& gpu = contenders.transport.gpu;
  if (!gpu.on_gpu() && !gpu.gpus.empty())
    usage_error("--gpus names the GPUs for --device cuda; numbers of ranks are given by --ranks");
  contenders.check_build();
}

Training::Training(const TrainOptions& options)
    : kind(options.payload.kind()),
      op(options.payload.op()),
      model(options.compute.trained()),
      compute(options.compute.resolve(model, {})),
      policy(parse_bucket_policy(options.bucket)),
      buckets(make_buckets(model, policy, size_of(kind))) {}

StepsRun::StepsRun(const TrainOptions& options, const Training& training, const MeasuringRun& run)
    : options_(options),
      training_(training),
      run_(run),
      gpus_(gpu_hosts(run.world, options.contenders.transport.gpu, run.own_host)),
      maker_(options.contenders, run.world, run.timeout, {.kind = training.kind, .op = training.op}, gpus_) {
  for (const Bucket& bucket : training.buckets) maker_.check(bucket.elements);
  communicator_ = run_.connect(options.contenders.transport);
  check_memory();
}

std::string StepsRun::ranks_text() const { return counted(ranks(), "rank"); }

Seconds StepsRun::longest_turn() const {
  const Seconds step = training_.compute.step.total() +
                       static_cast<double>(training_.buckets.size()) * std::max(run_.timeout, kLeastLimit);
  // On GPUs also its start, the communication alone and the profile.
  return static_cast<double>(1 + algorithms()) * (on_gpu() ? 4.0 * step : step);
}

std::vector<TrainRow> StepsRun::expected() {
  constexpr double kWide_ms = 99'999;
  const auto largest = std::ranges::max_element(training_.buckets, {}, &Bucket::elements);
  std::vector<TrainRow> rows;
  for (const std::string& name : maker_.names()) {
    PlansBySize plans;
    if (const auto plan = maker_.plan(name, *communicator_, largest->elements))
      plans[largest->elements] = {*plan, 1};
    TrainRow& row = rows.emplace_back(described(name, plans));
    row.iteration_ms = exact_timing(kWide_ms);
    // As many as decide whether there is an interval.
    row.iteration_ms.samples.resize(static_cast<std::size_t>(std::min(options_.iterations, 10)), kWide_ms);
    row.images_per_second = row.compute_ms = row.exposed_comm_ms = kWide_ms;
    if (on_gpu()) row.communication_ms = kWide_ms;
    if (on_gpu()) row.compute_slowdown = 1;
    row.efficiency = 1;
  }
  return rows;
}

std::vector<std::string> StepsRun::measure(const std::function<void()>& turn, const SoFar& so_far) {
  const Job job = run_.job(*communicator_);
  const Memory gradients = job.transport.allocate(training_.gradients());

  // The first trainer is a rank alone.
  std::vector<Trainer> trainers(1 + maker_.names().size());
  std::vector<PlansBySize> plans(maker_.names().size());
  for (const Bucket& bucket : training_.buckets) {
    auto contenders = maker_.make(*communicator_, bucket.elements);
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      trainers[i + 1].allreduces.push_back(std::move(contenders[i].call));
      if (!contenders[i].plan) continue;
      OfSize& of_size = plans[i][bucket.elements];
      of_size.plan = *contenders[i].plan;
      ++of_size.buckets;
    }
  }
  std::vector<std::string> wrong = verify(trainers, job.transport, gradients.get());
  if (!wrong.empty()) return wrong;
  // Zeros stay zeros under every operation: nothing overflows, however long it runs.
  {
    const HostPiece zeros(job.transport, training_.kind, training_.model.total_elements());
    std::fill_n(zeros.data(), zeros.bytes(), std::byte{});
    zeros.write(gradients.get(), training_.model.total_elements());
  }
  std::unique_ptr<GpuCompute> gpu;
  if (on_gpu()) gpu = need_gpu_plugin().make_compute(job.transport, training_.compute.step.total());
  const TrainingWork work{training_.compute.step, training_.buckets, training_.kind, !options_.no_overlap,
                          gradients.get(),        gpu.get(),         run_.timeout};
  const auto keep = [&](const std::vector<TrainingSteps>& measured) {
    so_far(rows(measured, plans), measured.front().total_ms.size());
  };
  const auto measured = measure_steps(trainers, job, work, options_.iterations, {turn, keep});
  if (gpu) add_gpu_notes(*gpu, rows(measured, plans));
  return {};
}

void StepsRun::check_memory() {
  MemoryCount memory(communicator_->transport());
  const Count elements = training_.model.total_elements();
  const Memory gradients = memory.allocate(training_.gradients());
  const HostPiece piece(memory, training_.kind, elements);
  const HostPiece result(memory, training_.kind, elements);
  std::vector<std::unique_ptr<Executor>> planned;
  Count largest = 0;
  for (const Bucket& bucket : training_.buckets) {
    largest = std::max(largest, bucket.elements);
    for (auto& allreduce : maker_.make_planned_over(memory, *communicator_, bucket.elements))
      planned.push_back(std::move(allreduce));
  }
  for (const auto& allreduce : planned) allreduce->run(gradients.get(), gradients.get());
  const Memory of_vendors =
      memory.host(maker_.vendors_memory(bytes_of(largest, training_.kind), training_.gradients()));
  const Memory of_compute = on_gpu() ? memory.allocate(kGpuComputeMemory) : Memory();
  const auto shortage =
      find_shortage(run_.world, memory.most(), memory_room(run_.world, options_.contenders.transport.gpu));
  if (!shortage) return;
  usage_error("too little memory: {}; choose a smaller model than {}, smaller buckets, or fewer ranks a host",
              to_text(*shortage), training_.model.name);
}

std::vector<std::string> StepsRun::verify(std::vector<Trainer>& trainers, Transport& transport,
                                          std::byte* gradients) const {
  const Payload payload(training_.kind, training_.op, ranks());
  const Count largest = training_.model.total_elements();
  const HostPiece piece(transport, training_.kind, largest);
  const HostPiece result(transport, training_.kind, largest);
  payload.fill(run_.world.rank(), piece.data(), piece.elements());
  std::vector<std::string> wrong;
  for (std::size_t i = 1; i < trainers.size(); ++i) {
    Count of_trainer = 0;
    for (std::size_t bucket = 0; bucket < training_.buckets.size(); ++bucket) {
      const Count count = training_.buckets[bucket].elements;
      piece.write(gradients, count);
      CollectiveCall& allreduce = *trainers[i].allreduces[bucket];
      if (!allreduce.keeps_time_limit()) run_.watchdog.watch("the check of " + allreduce.algorithm());
      allreduce.run(gradients, gradients);
      run_.watchdog.rest();
      of_trainer += result.wrong(payload, gradients, count);
    }
    const Count of_all = run_.world.sum(of_trainer);
    if (of_all == 0) continue;
    wrong.push_back(fmt::format("{} gave {} wrong elements on {}, where nothing was timed",
                                maker_.names()[i - 1], of_all, ranks_text()));
  }
  return wrong;
}

std::vector<TrainRow> StepsRun::rows(const std::vector<TrainingSteps>& measured,
                                     const std::vector<PlansBySize>& plans) const {
  std::vector<TrainRow> rows;
  const Timing alone = timing(measured.front().total_ms);
  for (std::size_t i = 0; i < plans.size() && run_.world.rank() == 0; ++i) {
    TrainRow& row = rows.emplace_back(described(maker_.names()[i], plans[i]));
    row.iteration_ms = timing(measured[i + 1].total_ms);
    row.images_per_second =
        static_cast<double>(ranks()) * training_.compute.batch / (row.iteration_ms.median * 1e-3);
    row.efficiency = alone.median / row.iteration_ms.median;
    row.exposed_comm_ms = std::max(0.0, row.iteration_ms.median - row.compute_ms);
    if (on_gpu()) set_gpu_times(row, measured.front(), measured[i + 1]);
    row.timeline = timeline_of(median_step(measured[i + 1]));
  }
  return rows;
}

void StepsRun::set_plans(TrainRow& row, const PlansBySize& plans) const {
  const Plan& largest = plans.rbegin()->second.plan;
  row.dims = dims_text(largest.dims);
  row.patterns = if_any(patterns_text(largest));
  row.lanes = largest.lanes;
  row.chunk_bytes = largest.chunk.value;
  if (plans.size() == 1 && largest.orders.empty()) return;
  std::vector<BucketPlan>& all = row.plans.emplace();
  for (const auto& [elements, of_size] : plans)
    all.push_back({bytes_of(elements, training_.kind).value, of_size.buckets, to_text(of_size.plan)});
}

TrainRow StepsRun::described(const std::string& name, const PlansBySize& plans) const {
  TrainRow row;
  row.model = training_.model.name;
  if (training_.model.sample.name != "images") row.samples = training_.model.sample.name;
  row.algorithm = name;
  if (!plans.empty()) set_plans(row, plans);
  row.gpus = ranks();
  row.nodes = run_.world.nodes();
  row.batch = training_.compute.batch;
  row.bucket = to_text(training_.policy);
  row.overlap = !options_.no_overlap;
  row.compute_ms = training_.compute.step.total().value * 1e3;
  row.wrong = 0;
  row.source = options_.contenders.transport.gpu.is_software() ? Source::emulated : source_here();
  return row;
}

/// What was computed, and what each algorithm cannot do on GPUs or spends on copies.
void StepsRun::add_gpu_notes(const GpuCompute& gpu, const std::vector<TrainRow>& rows) {
  gpu_notes_.push_back(
      fmt::format("The kernels that stand for the computation were {}. Slow-down is that of the computation "
                  "beside communication; exposed is what no computation hides; both are measured.",
                  gpu.way()));
  for (std::string& note : maker_.gpu_notes()) gpu_notes_.push_back(std::move(note));
  for (const TrainRow& row : rows) {
    const double copies = copies_share(row);
    if (copies < kMuchCopying) continue;
    gpu_notes_.push_back(
        fmt::format("With {} on {}, copies between host and GPU are {:.0f} % of what the GPU of rank 0 does.",
                    row.algorithm, ranks_text(), 100 * copies));
  }
}

}  // namespace polyring
