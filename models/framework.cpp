#include "models/framework.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/names.hpp"

namespace polyring {
namespace {

constexpr Bytes mebibytes(std::uint64_t count) { return {count << 20}; }

constexpr std::string_view kLaunch =
    "a launch 4.4 to 9.6 us (microsoft/superbench-results, kernel-launch, V100 and A100); DDP's buckets of "
    "25 MB beside "
    "1 MB at one rank: 3 to 30 us a bucket (pytorch benchmarks/distributed/ddp/README.md, one GPU)";
constexpr std::string_view kCycle =
    "a tensor waits for the next cycle, half of one on average, and 0.05 to 0.2 ms for what follows "
    "(horovod/common/operations.cc: 5 ms up to 0.20, 1 ms from 0.21; horovod#1454)";
constexpr std::string_view kDdpCopies =
    "torch/csrc/distributed/c10d/reducer.cpp: copy in and copy back, a read and a write each; one of both "
    "with "
    "gradient_as_bucket_view";
constexpr std::string_view kHorovodCopies =
    "horovod/common/ops/nccl_operations.cc: into the fusion buffer and out of it; up to 0.22 a pass for the "
    "scaling more";
constexpr std::string_view kDdpTensors =
    "DDP beside no DDP on one GPU, without the bytes: 9 to 26 us a tensor on V100, 7 to 11 on GH200 (pytorch "
    "benchmarks/distributed/ddp/README.md, ResNets); 3 with batched copies is ours";
constexpr std::string_view kHorovodTensors =
    "two copies of 5 to 10 us each up to 0.20, one kernel for many tensors from 0.21 (horovod#2435); from "
    "launch times";
constexpr std::string_view kCopyRate =
    "BabelStream's copy: 79, 87 and 84 % of the peak on A100, H100 and H200 (Azure/AI-benchmarking-guide); "
    "70 to 90 %";
constexpr std::string_view kFewChannels =
    "NCCL takes 2 of 56 to 80 SMs for one NIC (nccl#689); the upper end is ours";
constexpr std::string_view kVoltaOverlap =
    "computing grows by at most 15 % beside Horovod on V100 (Zhang et al., arXiv 2006.10103)";
constexpr std::string_view kAmpereOverlap =
    "18.9 % on average, 40 % at most, on A100, H100, MI210 and MI250 (Lee et al., arXiv 2507.03114); NCCL "
    "takes 12 to 22 % "
    "of the SMs at most";
constexpr std::string_view kBlackwellOverlap =
    "ours: below Hopper's, since NVLink SHARP and copy engines take fewer SMs";
constexpr std::string_view kStragglers =
    "standard deviation of single-GPU runs: 0.07 to 1.9 % between 38 H100 hosts, 0.02 to 0.5 % from step to "
    "step "
    "(lambdal/deeplearning-benchmark, logs); 0.2 to 2.5 % in production (ByteDance-Seed/StragglerAnalysis, "
    "traces)";

constexpr std::string_view kRamp =
    "time less payload / large rate, of curves of busbw over 1 to 64 MiB: 84 us on 2 hosts (nccl-tests#232, "
    "nccl#1411), 280 to 570 "
    "over EFA (aws-ofi-nccl#33 and #65), 25 to 60 on 8 H200 and 150 to 190 on 8 A100 (stas00/ml-engineering)";

std::string range_text(double least, double middle, double most, double factor, std::string_view unit) {
  const auto [low, high] = std::minmax(least, most);
  return fmt::format("{:.4g} to {:.4g}{}, {:.4g} in the middle", factor * low, factor * high, unit,
                     factor * middle);
}

CostRange microseconds_range(double StepCosts::*cost, std::string name, std::array<double, 3> us,
                             std::string_view source) {
  return {cost,
          std::move(name),
          us[0] * 1e-6,
          us[1] * 1e-6,
          us[2] * 1e-6,
          range_text(us[0], us[1], us[2], 1, " us"),
          std::string(source)};
}

CostRange percent_range(double StepCosts::*cost, std::string name, std::array<double, 3> percent,
                        std::string_view source) {
  return {cost,
          std::move(name),
          percent[0] / 100,
          percent[1] / 100,
          percent[2] / 100,
          range_text(percent[0], percent[1], percent[2], 1, " %"),
          std::string(source)};
}

bool is_amd(GpuGeneration generation) {
  return generation == GpuGeneration::cdna || generation == GpuGeneration::cdna2 ||
         generation == GpuGeneration::cdna3;
}

CostRange slowdown_range(const CostSetting& setting) {
  const std::string name = "computing slowed by allreduces beside it";
  const auto range = [&](std::array<double, 3> percent, std::string_view source) {
    return percent_range(&StepCosts::slowdown, name, percent, source);
  };
  if (is_amd(setting.generation)) return range({5, 19, 40}, kAmpereOverlap);
  if (setting.generation == GpuGeneration::blackwell) return range({3, 10, 25}, kBlackwellOverlap);
  if (setting.generation >= GpuGeneration::ampere) return range({5, 15, 30}, kAmpereOverlap);
  if (setting.hosts > 1 && setting.nics == 1) return range({1, 4, 10}, kFewChannels);
  return range({2, 8, 15}, kVoltaOverlap);
}

void add_copies(std::vector<CostRange>& ranges, std::array<double, 3> accesses, std::string_view source) {
  ranges.push_back({&StepCosts::accesses, "accesses to memory for an element of the gradients", accesses[0],
                    accesses[1], accesses[2], range_text(accesses[0], accesses[1], accesses[2], 1, ""),
                    std::string(source)});
  ranges.push_back({&StepCosts::copy_share, "copies' part of the memory's bandwidth", 0.9, 0.8, 0.7,
                    range_text(90, 80, 70, 1, " %"), std::string(kCopyRate)});
}

void add_of_framework(std::vector<CostRange>& ranges, const Framework& framework,
                      const CostSetting& setting) {
  const auto launch = [&](std::array<double, 3> us, std::string_view source) {
    ranges.push_back(microseconds_range(&StepCosts::launch_s, "launch of an allreduce", us, source));
  };
  const auto tensors = [&](std::array<double, 3> us, std::string_view source) {
    ranges.push_back(microseconds_range(&StepCosts::tensor_s, "copies of a gradient tensor", us, source));
  };
  if (framework.name == "ddp") {
    launch({5, 10, 30}, kLaunch);
    const double middle = setting.generation <= GpuGeneration::volta ? 15 : 9;
    tensors({3, middle, 25}, kDdpTensors);
    add_copies(ranges, {2, 4, 4}, kDdpCopies);
  } else if (framework.name == "horovod") {
    launch({50, 600, 1200}, kCycle);
    tensors({0.5, 1, 5}, kHorovodTensors);
    add_copies(ranges, {0, 4, 4}, kHorovodCopies);
  } else if (framework.name == "horovod-0.20") {
    launch({500, 2600, 5200}, kCycle);
    tensors({10, 15, 20}, kHorovodTensors);
    add_copies(ranges, {4, 6, 8}, kHorovodCopies);
  } else {
    launch({5, 10, 20}, kLaunch);
  }
}

}  // namespace

const std::vector<Framework>& frameworks() {
  using Kind = BucketPolicy::Kind;
  static const std::vector<Framework> all{
      {"ddp", "PyTorch's DistributedDataParallel", {Kind::fused, mebibytes(25)}, true, false},
      {"horovod", "Horovod from 0.21, cycles of 1 ms", {Kind::fused, mebibytes(128)}, true, false},
      {"horovod-0.20", "Horovod up to 0.20, cycles of 5 ms", {Kind::fused, mebibytes(64)}, true, false},
      {"caffe", "Caffe with IBM's DDL", {Kind::none, {}}, false, true},
      {"caffe2", "Caffe2 with Gloo", {Kind::per_tensor, {}}, true, true},
      {"none",
       "your own training loop, gradients reduced in place",
       {Kind::fused, mebibytes(25)},
       true,
       false},
  };
  return all;
}

std::vector<std::string> framework_names() {
  std::vector<std::string> names;
  for (const Framework& framework : frameworks()) names.emplace_back(framework.name);
  return names;
}

const Framework& find_framework(std::string_view name) {
  const auto found = std::ranges::find(frameworks(), name, &Framework::name);
  if (found != frameworks().end()) return *found;
  throw Error(ExitCode::usage, unknown_name("framework", name, framework_names()));
}

std::vector<CostRange> cost_ranges(const Framework& framework, const CostSetting& setting) {
  std::vector<CostRange> ranges;
  add_of_framework(ranges, framework, setting);
  ranges.push_back(
      microseconds_range(&StepCosts::ramp_s, "start and end of an allreduce", {60, 120, 350}, kRamp));
  if (framework.overlap) ranges.push_back(slowdown_range(setting));
  ranges.push_back(percent_range(&StepCosts::variation, "how much GPUs differ in their computing time",
                                 {0.3, 0.8, 2.5}, kStragglers));
  return ranges;
}

CostRange call_range() {
  return microseconds_range(&StepCosts::call_s,
                            "launch of a collective of activations, or of a message between stages",
                            {5, 10, 30}, kLaunch);
}

CostRange input_range() {
  return percent_range(
      &StepCosts::input, "waiting for samples", {0, 2, 6},
      "real beside synthetic samples on one host of 4 to 8 GPUs: 1.1 to 6.0 % for ResNets and Inception "
      "(TensorFlow benchmarks, May 2017)");
}

StepCosts middle_of(const std::vector<CostRange>& ranges) {
  StepCosts costs;
  for (const CostRange& range : ranges) costs.*range.cost = range.middle;
  return costs;
}

}  // namespace polyring
