#include "bench/predict/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/record/run_cluster.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

/// Whether the data were in GPUs' memory. Polyring's own are in host memory, and so are those of MPI's
/// benchmarks unless a note of the import says otherwise.
bool on_gpus(const ResultFile& result, const CollectiveRow& row) {
  constexpr std::array kOfGpus{"nccl", "rccl", "xccl"};
  const bool library = std::ranges::any_of(kOfGpus, [&](const char* name) {
    return row.source == Source::imported && row.algorithm.starts_with(name);
  });
  return library || std::ranges::any_of(result.notes, [](const std::string& note) {
           return note.starts_with("Buffers are in device memory");
         });
}

/// The machine with so many hosts.
Cluster with_hosts(Cluster machine, int hosts) {
  if (machine.host_count() == hosts) return machine;
  if (machine.groups.size() > 1)
    usage_error("the machine has {} hosts that differ, and the run had {}", machine.host_count(), hosts);
  machine.groups.front().count = hosts;
  return machine;
}

Cluster with_ranks_per_host(Cluster cluster, int ranks) {
  for (HostGroup& group : cluster.groups) {
    if (group.machine.ranks() < ranks)
      usage_error("{} has {}, and the run had {} ranks a host", group.machine.name,
                  counted(static_cast<std::int64_t>(group.machine.gpus.size()), "GPU"), ranks);
    if (group.machine.ranks() > ranks) group.machine = with_gpus(group.machine, ranks);
  }
  return cluster;
}

/// Throws a usage Error where the machine cannot be that of the run.
Cluster hosts_of_run(const Cluster& machine, const ResultFile& result, const CollectiveRow& row) {
  const bool gpus = on_gpus(result, row);
  if (result.placement.empty()) {
    if (gpus) return with_ranks(machine, row.ranks);
    usage_error("the log does not say on which hosts it ran");
  }
  Cluster cluster = with_hosts(machine, row.nodes);
  if (!gpus) return with_ranks_of(std::move(cluster), result.placement, "the run");
  if (row.ranks % row.nodes != 0)
    usage_error("{} ranks on {} hosts: not as many on each", row.ranks, row.nodes);
  return with_ranks_per_host(std::move(cluster), row.ranks / row.nodes);
}

std::string verdict_of(const CollectiveRow& row, const std::optional<JudgedBy>& expected) {
  if (row.wrong.value_or(0) > 0) return "fail";
  if (!expected || row.time_us.median <= 0 || row.busbw_GBps <= 0) return "no data";
  // Bus bandwidth goes down as time goes up: each end of the time's interval is the other end of its own.
  const double work = row.busbw_GBps * row.time_us.median;
  if (work / row.time_us.ci_high >= expected->low) return "pass";
  return work / row.time_us.ci_low < expected->low ? "fail" : "undecided";
}

}  // namespace

const Judge::Hosts& Judge::hosts_of(const ResultFile& result, const CollectiveRow& row) {
  const auto [known, fresh] = hosts_.try_emplace({&result, row.ranks});
  if (!fresh) return known->second;
  try {
    known->second.cluster = hosts_of_run(machine_, result, row);
  } catch (const Error& error) {
    known->second.unknown = error.what();
  }
  return known->second;
}

const std::optional<UsableRate>& Judge::usable_by(const ResultFile& result, const CollectiveRow& row,
                                                  const Cluster& cluster) {
  const auto [known, fresh] = usable_.try_emplace({&result, row.ranks, row.algorithm});
  if (!fresh) return known->second;
  const auto slowest = [](const UsableWay& way) {
    return *std::ranges::min_element(way, {}, [](const UsableRate& rate) { return rate.rate.value; });
  };
  for (const UsableWay& way : usable_ways(cluster, parse_collective(result.collective), row.algorithm)) {
    const UsableRate rate = slowest(way);
    if (!known->second || rate.rate.value > known->second->rate.value) known->second = rate;
  }
  return known->second;
}

Bound Judge::bound_of(const ResultFile& result, const CollectiveRow& row, const Cluster& cluster) {
  const Collective collective = parse_collective(result.collective);
  const auto [known, fresh] = bounds_.try_emplace({&result, row.ranks, row.size_bytes});
  if (fresh) known->second = usual_bound(collective, cluster, Bytes{row.size_bytes});
  Bound bound = known->second;
  if (bound.time.value <= 0 || !std::isfinite(bound.time.value)) return bound;
  if (const auto& usable = usable_by(result, row, cluster)) {
    const double work = row.busbw_GBps * row.time_us.median;  // bytes that the bus bandwidth counts, in kB
    bound.time = {work / usable->rate.gigabytes_per_second() * 1e-6};
    bound.cut = usable->limit;
  }
  return bound;
}

std::optional<JudgedBy> Judge::expected_of(const Cluster& cluster, const ResultFile& result,
                                           const CollectiveRow& row) const {
  if (!expect_) return std::nullopt;
  try {
    return expect_(cluster, parse_collective(result.collective), row.algorithm, Bytes{row.size_bytes});
  } catch (const Error&) {  // devices that nothing connects: the bound says so
    return std::nullopt;
  }
}

Judgement Judge::of(const ResultFile& result, const CollectiveRow& row) {
  Judgement judgement;
  const Hosts& hosts = hosts_of(result, row);
  judgement.verdict = verdict_of(row, std::nullopt);
  if (!hosts.cluster) {
    judgement.limit = "no bound: " + hosts.unknown;
    return judgement;
  }
  const Bound bound = bound_of(result, row, *hosts.cluster);
  if (bound.time.value <= 0 || !std::isfinite(bound.time.value)) {
    judgement.limit = "no bound: " + (bound.cut.empty() ? "one rank has nobody to talk to" : bound.cut);
  } else if (is_faster(row.time_us, exact_timing(bound.time.value * 1e6))) {
    judgement.limit = "the bound does not hold (switches that reduce, or another machine): " + bound.cut;
  } else if (row.wrong.value_or(0) == 0) {
    judgement.bound_fraction = bound.time.value * 1e6 / row.time_us.median;
    judgement.limit = bound.cut;
  }
  const std::optional<JudgedBy> expected = expected_of(*hosts.cluster, result, row);
  if (expected) {
    judgement.expected_GBps = {expected->low, expected->high};
    judgement.basis = expected->basis;
    if (row.busbw_GBps > 0) judgement.expected_fraction = row.busbw_GBps / expected->low;
  }
  judgement.verdict = verdict_of(row, expected);
  return judgement;
}

}  // namespace polyring
