// A made-up acceptance run of 64 hosts with 8 ranks each, and what is measured and modelled beside it.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "tests/reports/examples.hpp"

namespace polyring::examples {
namespace {

constexpr int kHosts = 64;
constexpr int kRanksOfHost = 8;

std::string host_name(int host) { return fmt::format("node{:02}", host); }

std::vector<double> noisy(double value, int count, std::mt19937& random) {
  std::vector<double> samples;
  for (int i = 0; i < count; ++i)
    samples.push_back(value * (1 + 0.02 * static_cast<double>(random()) / 4294967296.0));
  return samples;
}

ResultFile provenance(const char* command) {
  ResultFile file;
  file.created = "2025-03-01T12:34:56Z";
  file.command = command;
  file.polyring_version = "0.1.0";
  file.commit = "abc123def456";
  for (int rank = 0; rank < kHosts * kRanksOfHost; ++rank)
    file.placement.push_back({rank, host_name(rank / kRanksOfHost)});
  file.versions = {{"mpi", "Open MPI 4.1.4"}, {"compiler", "GCC 12.2"}};
  std::vector<HostConditions> conditions;
  for (int host = 0; host < kHosts; ++host)
    conditions.push_back({.host = host_name(host),
                          .ranks = kRanksOfHost,
                          .cpus = 64,
                          .least_cpus_of_rank = 8,
                          .most_cpus_of_rank = 8,
                          .elapsed_s = 120,
                          .load_average = 0.2,
                          .own_cpus = 7.9,
                          .cpu_limit = {},
                          .governor = "performance"});
  file.conditions = conditions;
  return file;
}

CheckRow measured(std::string check, std::string subject, std::vector<std::string> hosts, bool passes) {
  CheckRow row{.check = std::move(check), .subject = std::move(subject), .hosts = std::move(hosts)};
  row.verdict = passes ? Verdict::pass : Verdict::fail;
  row.why = passes ? "It is within what is expected." : "It is below the low end of what is expected.";
  row.remedy = passes ? "" : "Exchange the cable.";
  row.threshold_source = "expected";
  row.attempts = passes ? 1 : 3;
  row.seconds = 0.5;
  return row;
}

ResultFile accept_of_64() {
  ResultFile file = provenance("polyring accept --budget 20min -J accept64.json");
  std::mt19937 random(5);
  std::vector<CheckRow> rows;
  for (int host = 0; host < kHosts; ++host)
    rows.push_back(measured("links", host_name(host), {host_name(host)}, host != 40));
  for (int a = 0; a < kHosts; ++a) {
    for (int b = a + 1; b < kHosts; ++b) {
      const bool passes = !(a == 17 && b == 42) && a != 40 && b != 40;
      CheckRow row = measured("pairs.allreduce", fmt::format("{} and {}", host_name(a), host_name(b)),
                              {host_name(a), host_name(b)}, passes);
      row.quantity = "busbw";
      row.unit = "GB/s";
      row.value = timing(noisy(passes ? 22.8 : 11.6, 10, random));
      row.least = 20.5;
      row.size_bytes = 64 << 20;
      rows.push_back(row);
    }
  }
  for (int rank = 0; rank < kHosts * kRanksOfHost; ++rank) {
    const std::string host = host_name(rank / kRanksOfHost);
    CheckRow row = measured("stragglers", fmt::format("rank {} on {}", rank, host), {host}, rank != 100);
    row.quantity = "time";
    row.unit = "of the median rank's";
    row.value = timing(noisy(rank == 100 ? 1.25 : 0.99, 10, random));
    row.most = 1.1;
    rows.push_back(row);
  }
  file.rows = std::move(rows);
  return file;
}

ResultFile allreduce_of_64() {
  ResultFile file = provenance("polyring allreduce -b 8 -e 4G -f 2 -J allreduce64.json");
  std::mt19937 random(6);
  struct Contender {
    const char* algorithm;
    const char* dims;
    double latency_us;
    double GBps;
  };
  std::vector<CollectiveRow> rows;
  for (int step = 0; step < 30; ++step) {
    const auto bytes = std::uint64_t{8} << step;
    for (const bool in_place : {false, true}) {
      for (const Contender& contender :
           {Contender{"multi-ring", "8x64", 45, 21.5}, Contender{"ring", "512", 310, 17.2},
            Contender{"nccl", "", 38, 20.1}, Contender{"mpi", "", 61, 9.2}}) {
        CollectiveRow row;
        row.algorithm = contender.algorithm;
        row.implementation = *contender.dims == '\0' ? contender.algorithm : "mpi";
        row.dims = contender.dims;
        row.lanes = *contender.dims == '\0' ? 0 : 1;
        row.ranks = kHosts * kRanksOfHost;
        row.nodes = kHosts;
        row.ranks_per_node = kRanksOfHost;
        row.size_bytes = bytes;
        row.count = bytes / 4;
        row.dtype = "float32";
        row.op = "sum";
        row.in_place = in_place;
        row.timing = TimingMethod::isolated;
        row.wrong = 0;
        row.bound_us = 2 + static_cast<double>(bytes) / 12.1e3;
        const double time = contender.latency_us + 2 * static_cast<double>(bytes) / (contender.GBps * 1e3);
        set_time(row, timing(noisy(time, 21, random)), "allreduce");
        rows.push_back(row);
      }
    }
  }
  file.rows = std::move(rows);
  return file;
}

ResultFile scale_to_256() {
  ResultFile file = provenance("polyring scale --machine minsky --gpus 4..256 -J scale64.json");
  file.placement.clear();
  file.conditions.reset();
  file.inputs = {{"EDR InfiniBand", "12.1 GB/s", "InfiniBand Trade Association"}};
  std::vector<ScaleRow> rows;
  double loss = 0;
  for (const char* algorithm : {"multi-ring", "ring", "nccl", "mpi", "tree", "parameter-server"}) {
    loss += 0.006;
    for (int gpus = 4; gpus <= 256; gpus *= 2) {
      ScaleRow row;
      row.machine = "minsky";
      row.model = "resnet50";
      row.algorithm = algorithm;
      row.dims = std::to_string(gpus);
      row.gpus = gpus;
      row.nodes = gpus / 4;
      row.batch = 32;
      row.bucket = "none";
      row.efficiency = 1 - loss * std::log2(gpus / 4.0);
      row.speedup = row.nodes * row.efficiency;
      row.iteration_ms = 164 / row.efficiency;
      row.images_per_second = gpus * 32 * 1000 / row.iteration_ms;
      if (rows.size() < 7) {
        row.published_efficiency = 1 - 0.009 * std::log2(gpus / 4.0);
        row.published_speedup = row.nodes * *row.published_efficiency;
      }
      rows.push_back(row);
    }
  }
  file.rows = std::move(rows);
  return file;
}

}  // namespace

std::vector<std::pair<std::string, ResultFile>> of_64_hosts() {
  return {{"accept64", accept_of_64()},
          {"allreduce64", allreduce_of_64()},
          {"scale64", scale_to_256()},
          {"train64", train()}};
}

}  // namespace polyring::examples
