#include "tests/reports/examples.hpp"

#include <stdlib.h>

#include <cmath>
#include <random>
#include <stdexcept>

namespace polyring::examples {
namespace {

ResultFile provenance(const std::string& command) {
  ResultFile file;
  file.created = "2025-03-01T12:34:56Z";
  file.command = command;
  file.polyring_version = "0.1.0";
  file.commit = "0123abc";
  file.placement = {{0, "alpha"}, {1, "alpha"}, {2, "beta"}, {3, "beta"}};
  file.environment = {{"OMP_NUM_THREADS", "1"}};
  file.versions = {{"mpi", "Open MPI 4.1.4"}, {"compiler", "GCC 12.2"}};
  file.machine = R"({"hosts":[{"name":"alpha"},{"name":"beta"}]})";
  file.notes = {"2 ranks a core: timings are noisy"};
  return file;
}

struct Contender {
  const char* algorithm;
  const char* implementation;
  const char* dims;
  double latency_us;
  double GBps;
};

std::vector<double> noisy(double time, int count, std::mt19937& random) {
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    const double uniform = static_cast<double>(random()) / 4294967296.0;
    samples.push_back(std::round(time * (1 + 0.08 * uniform * uniform) * 100) / 100);
  }
  return samples;
}

CollectiveRow allreduce_row(const Contender& contender, std::uint64_t bytes, bool in_place, int samples,
                            std::mt19937& random) {
  CollectiveRow row;
  row.algorithm = contender.algorithm;
  row.implementation = contender.implementation;
  row.dims = contender.dims;
  row.patterns = row.dims == "2x2" ? "direct+ring" : "";
  row.lanes = *contender.dims == '\0' ? 0 : 1;
  row.chunk_bytes = *contender.dims == '\0' ? 0 : 1 << 20;
  row.ranks = 4;
  row.nodes = 2;
  row.ranks_per_node = 2;
  row.size_bytes = bytes;
  row.count = bytes / 4;
  row.dtype = "float32";
  row.op = "sum";
  row.in_place = in_place;
  row.timing = TimingMethod::isolated;
  row.wrong = 0;
  row.source = Source::measured;
  row.bound_us = static_cast<double>(bytes) / 12.1e3;
  const double time = contender.latency_us + 1.5 * static_cast<double>(bytes) / (contender.GBps * 1e3);
  set_time(row, timing(noisy(in_place ? 0.97 * time : time, samples, random)), "allreduce");
  return row;
}

TrainRow train_row(const char* algorithm, bool overlap, double communication_ms) {
  TrainRow row;
  row.machine = "alpha, beta";
  row.model = "resnet50";
  row.algorithm = algorithm;
  row.dims = "2x2";
  row.lanes = 1;
  row.chunk_bytes = 1 << 20;
  row.gpus = 4;
  row.nodes = 2;
  row.batch = 32;
  row.bucket = "fused:25MiB";
  row.overlap = overlap;
  row.compute_ms = 164;
  row.wrong = 0;
  row.timeline = {{TimelineLane::compute, "forward", 0, 54}, {TimelineLane::compute, "backward", 54, 164}};
  double free_at = 0;
  for (int bucket = 0; bucket < 4; ++bucket) {
    const double ready = overlap ? 54 + 27.5 * (bucket + 1) : 164;
    const double begin = std::max(ready, free_at);
    free_at = begin + communication_ms / 4;
    row.timeline.push_back({TimelineLane::communication, "bucket " + std::to_string(bucket), begin, free_at});
  }
  row.timeline.push_back({TimelineLane::compute, "optimiser", free_at, free_at + 3});
  row.exposed_comm_ms = free_at - 164;
  std::mt19937 random(7);
  row.iteration_ms = timing(noisy(free_at + 3, 15, random));
  row.images_per_second = 4 * 32 * 1000 / row.iteration_ms.median;
  row.efficiency = 167 / row.iteration_ms.median;
  return row;
}

/// Of several sizes of buckets, on GPUs.
TrainRow train_row_with_plans() {
  TrainRow row = train_row("multi-ring", true, 60);
  row.patterns = "direct+ring";
  row.plans = {{4096, 12, "multi-ring 2x2, 1 lane, star+halving"},
               {25 << 20, 3, "multi-ring 2x2, 1 lane, direct+ring, chunks of 1MiB"}};
  row.compute_slowdown = 1.0312;
  row.communication_ms = 60;
  row.gpu_profile = {{"computation", 0.75, 169.1, 2},
                     {"kernels of allreduces", 0.25, 56.4, 15},
                     {"idle", std::nullopt, 12.5, 0}};
  return row;
}

ScaleRow scale_row(const char* algorithm, int gpus, double communication_ms, Source source) {
  ScaleRow row;
  row.machine = "minsky";
  row.model = "resnet50";
  row.algorithm = algorithm;
  row.dims = gpus == 4 ? "4" : "4x" + std::to_string(gpus / 4);
  row.lanes = 1;
  row.chunk_bytes = 1 << 20;
  row.gpus = gpus;
  row.nodes = gpus / 4;
  row.batch = 32;
  row.bucket = "none";
  row.iteration_ms = 164 + communication_ms;
  row.exposed_comm_ms = communication_ms;
  row.images_per_second = gpus * 32 * 1000 / row.iteration_ms;
  row.efficiency = 167 / row.iteration_ms;
  row.speedup = row.nodes * row.efficiency;
  row.source = source;
  return row;
}

}  // namespace

ResultFile allreduce(int samples) {
  ResultFile file =
      provenance("polyring allreduce -b 1K -e 16M -f 8 --algorithm multi-ring,ring,mpi -J out.json");
  std::mt19937 random(42);
  std::vector<CollectiveRow> rows;
  for (std::uint64_t bytes = 1024; bytes <= 16u << 20; bytes *= 8) {
    for (const bool in_place : {false, true}) {
      for (const Contender& contender :
           {Contender{"multi-ring", "mpi", "2x2", 22, 9.8}, Contender{"ring", "mpi", "4", 31, 7.4},
            Contender{"mpi", "MPI_Allreduce", "", 14, 6.1}}) {
        rows.push_back(allreduce_row(contender, bytes, in_place, samples, random));
      }
    }
  }
  file.rows = std::move(rows);
  file.conditions = {{.host = "alpha",
                      .ranks = 2,
                      .cpus = 4,
                      .least_cpus_of_rank = 2,
                      .most_cpus_of_rank = 2,
                      .elapsed_s = 21.5,
                      .load_average = 0.25,
                      .own_cpus = 1.75,
                      .other_cpus = 0.5,
                      .cpu_limit = {},
                      .governor = {}},
                     {.host = "beta",
                      .ranks = 2,
                      .cpus = 4,
                      .least_cpus_of_rank = 4,
                      .most_cpus_of_rank = 4,
                      .elapsed_s = 21.5,
                      .load_average = 0.125,
                      .own_cpus = 1.75,
                      .stolen_cpus = 0.25,
                      .cpu_limit = 2.5,
                      .throttled_s = 1.5,
                      .governor = "performance",
                      .least_clock_MHz = 1200,
                      .most_clock_MHz = 2300.25}};
  return file;
}

ResultFile train() {
  ResultFile file = provenance("polyring train --model resnet50 --batch 32 --compute-ms 164 -J train.json");
  file.rows = std::vector<TrainRow>{train_row_with_plans(), train_row("parameter-server", false, 170)};
  return file;
}

ResultFile scale() {
  ResultFile file =
      provenance("polyring scale --machine minsky --model resnet50 --gpus 4..256 -J scale.json");
  file.placement.clear();
  file.inputs = {
      {"EDR InfiniBand, 4x, per direction", "12.1 GB/s", "InfiniBand Trade Association, EDR: 4 x 25.8 Gb/s"},
      {"P100, ResNet-50, batch 32", "195 images/s", "TensorFlow benchmarks, May 2017"}};
  const double published[] = {1.0, 2.0, 3.9, 7.9, 15.5, 30.5, 60.6};
  std::vector<ScaleRow> rows;
  for (int step = 0; step < 7; ++step) {
    ScaleRow row = scale_row("multi-ring", 4 << step, 3 + 1.1 * step, Source::modelled);
    row.published_speedup = published[step];
    row.published_efficiency = published[step] / (1 << step);
    rows.push_back(row);
    ScaleRow fed = scale_row("parameter-server", 4 << step, 3 + 24.0 * step, Source::modelled);
    fed.iteration_low_ms = 0.98 * fed.iteration_ms;
    fed.iteration_high_ms = 1.02 * fed.iteration_ms;
    fed.efficiency_low = 0.97 * fed.efficiency;
    fed.efficiency_high = 1.02 * fed.efficiency;
    fed.feed_GBps = 0.11e-3 * fed.images_per_second;
    fed.rails = 2;
    fed.bottleneck = "host 0: mlx5_0 out, busy 95 % of the time";
    fed.limit = step < 6 ? "compute" : "data (file system)";
    rows.push_back(fed);
  }
  rows.push_back(scale_row("ring", 4, 3.2, Source::measured));
  rows.push_back(scale_row("ring", 8, 9.5, Source::measured));
  file.rows = std::move(rows);
  return file;
}

ResultFile published_runs() {
  ResultFile file = provenance("polyring scale --published -J published.json");
  file.placement.clear();
  file.title = "What others published";
  std::vector<ScaleRow> rows;
  const auto add = [&rows](const char* run, bool held_out, int gpus, double published, double middle) {
    ScaleRow row = scale_row("nccl", gpus, 20, Source::modelled);
    row.machine = "a published system";
    row.efficiency = middle;
    row.efficiency_low = middle - 0.05;
    row.efficiency_high = middle + 0.02;
    row.published_efficiency = published;
    row.published_run = run;
    row.held_out = held_out;
    row.framework = "ddp";
    row.widest_unknown = "waiting for samples";
    rows.push_back(row);
  };
  add("horovod-16x4-resnet101", true, 8, 0.8, 0.97);
  add("horovod-16x4-resnet101", true, 64, 0.89, 0.91);
  add("bert-512", true, 512, 0.75, 0.98);
  add("h100-resnet50", true, 8, 0.98, 0.97);
  add("dlperf-resnet50", false, 32, 0.9, 0.94);
  add("DDL, Caffe, ResNet-101 on ImageNet-22K: 16 days became 7 hours", false, 256, 0.86, 0.88);
  rows.back().combinations = 8;
  file.rows = std::move(rows);
  return file;
}

ResultFile tune() {
  ResultFile file = provenance("polyring tune -b 1K -e 4K");
  file.partial = "2 of 3 measurements";
  TuneRow row{1024, 4,   2,    "MPI", 5,   "2x2, 1 lane, direct+ring", 4.5, "2x2, 1 lane, ring+ring",
              4,    1.1, 1.05, 1.2,   true};
  std::vector<TuneRow> rows{row};
  row.size_bytes = 4096;
  row.other_chosen = false;
  rows.push_back(row);
  file.rows = std::move(rows);
  return file;
}

ResultFile accept() {
  ResultFile file = provenance("polyring accept --budget 60s --fabric net.out");
  file.ended = "it was interrupted";
  file.rounds = {2, {"links", "pairs.allreduce"}, 95.5};
  file.leaves = {{"leaf0", {"node0", "node2"}}, {"leaf1", {"node1"}}, {"", {"node3"}}};
  std::vector<CheckRow> rows;
  for (const std::string host : {"node0", "node1", "node2", "node3"}) {
    const bool down = host == "node2";
    rows.push_back({.check = "links",
                    .subject = host,
                    .hosts = {host},
                    .verdict = down ? Verdict::fail : Verdict::pass,
                    .why = down ? "Port mlx5_1 is down; the other hosts have 2 ports up."
                                : "All 2 ports are up at 100 Gb/s.",
                    .remedy = down ? "Check the cable of mlx5_1." : "",
                    .seconds = 0.1});
  }
  int round = 0;
  for (const auto& [a, b] : {std::pair{0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 3}, {1, 2}}) {
    const bool slow = a == 1 && b == 3;
    std::vector<double> samples;
    for (int i = 0; i < 12; ++i) samples.push_back((slow ? 5.9 : 11.6) + 0.01 * ((7 * i + round) % 12));
    std::vector<double> trend;
    for (int i = 0; i < 8; ++i) trend.push_back(slow ? 11.6 - 0.8 * i : 11.6 + 0.01 * ((3 * i + round) % 5));
    const std::vector<std::string> hosts{fmt::format("node{}", a), fmt::format("node{}", b)};
    rows.push_back(
        {.check = "pairs.allreduce",
         .subject = hosts[0] + " and " + hosts[1],
         .hosts = hosts,
         .verdict = slow ? Verdict::fail : Verdict::pass,
         .why = slow ? "busbw is 5.95 GB/s, below 10.1 GB/s, the low end of what is expected."
                     : "busbw is above 10.1 GB/s, the low end of what is expected.",
         .remedy = slow ? "Both hosts are as fast with others: exchange the cable between them." : "",
         .quantity = "busbw",
         .unit = "GB/s",
         .value = timing(samples),
         .least = 10.1,
         .threshold_source = "expected",
         .size_bytes = 64 << 20,
         .attempts = slow ? 3 : 1,
         .seconds = 1.5,
         .trend = trend});
    ++round;
  }
  rows.push_back({.check = "nic.counters",
                  .subject = "node3",
                  .hosts = {"node3"},
                  .verdict = Verdict::error,
                  .why = "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error cannot be read.",
                  .remedy = "Run it where /sys is mounted."});
  rows.push_back({.check = "stragglers",
                  .subject = "rank 5 on node1",
                  .hosts = {"node1"},
                  .verdict = Verdict::inconclusive,
                  .why = "Its time is 1.08 to 1.12 times that of half of the ranks, and 1.1 is allowed.",
                  .remedy = "Repeat it with a longer --budget.",
                  .quantity = "time",
                  .unit = "of the median rank's",
                  .value = timing({1.08, 1.09, 1.1, 1.1, 1.11, 1.12}),
                  .most = 1.1,
                  .threshold_source = "default",
                  .attempts = 5,
                  .seconds = 10});
  rows.push_back({.check = "data", .verdict = Verdict::skipped, .why = "No --data was given."});
  file.rows = std::move(rows);
  return file;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "polyring-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace polyring::examples
