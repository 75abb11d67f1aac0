#include "bench/accept/gpu_copies.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/memory_room.hpp"
#include "bench/accept/gpu_hosts.hpp"

namespace polyring {
namespace {

using nlohmann::json;

std::vector<CopyJob> outside_jobs(int gpus) {
  enum : std::size_t { to, from, to_and_from, one_way, both_ways, to_all, from_all, among_all };
  std::vector<CopyJob> jobs;
  CopyJob all_to{to_all, {}};
  CopyJob all_from{from_all, {}};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const GpuCopy there{kHostMemory, gpu};
    const GpuCopy back{gpu, kHostMemory};
    jobs.push_back({to, {there}});
    jobs.push_back({from, {back}});
    jobs.push_back({to_and_from, {there, back}, true});
    all_to.copies.push_back(there);
    all_from.copies.push_back(back);
  }
  for (int gpu = 0; gpu < gpus; ++gpu) {
    for (int peer = 0; peer < gpus; ++peer) {
      if (peer == gpu) continue;
      jobs.push_back({one_way, {{gpu, peer}}});
      if (gpu < peer) jobs.push_back({both_ways, {{gpu, peer}, {peer, gpu}}, true});
    }
  }
  if (gpus < 2) return jobs;
  jobs.push_back(std::move(all_to));
  jobs.push_back(std::move(all_from));
  // Each GPU sends to one other and receives from one.
  for (int distance = 1; distance < gpus; ++distance) {
    CopyJob& job = jobs.emplace_back(CopyJob{among_all, {}});
    for (int gpu = 0; gpu < gpus; ++gpu) job.copies.push_back({gpu, (gpu + distance) % gpus});
  }
  return jobs;
}

std::vector<CopyJob> inside_jobs(int gpus) {
  CopyJob all;
  for (int gpu = 0; gpu < gpus; ++gpu) all.copies.push_back({gpu, gpu});
  return {all};
}

/// So that other programs, and other processes of this run, have memory left.
Bytes size_that_fits(const GpuPlugin& plugin, const std::vector<GpuDevice>& gpus, Bytes wanted) {
  constexpr std::uint64_t kPartOfGpu = 16;
  constexpr std::uint64_t kPartOfHost = 8;
  constexpr std::uint64_t kPinnedOfGpu = 3;
  std::uint64_t most = wanted.value;
  for (const GpuDevice& gpu : gpus) most = std::min(most, plugin.free_memory(gpu.index).value / kPartOfGpu);
  const MemoryRoom room = memory_room();
  for (const auto& one : {room.host, room.cgroup, room.address_space})
    if (one) most = std::min(most, one->value / (kPartOfHost * kPinnedOfGpu * gpus.size()));
  return {most};
}

}  // namespace

std::string CopyJob::name() const {
  std::vector<std::string> parts;
  for (const GpuCopy& copy : copies) parts.push_back(fmt::format("{}>{}", copy.from, copy.to));
  return fmt::format("{}:{}", quantity, fmt::join(parts, ","));
}

const CopyCheck& copies_to_and_between_gpus() {
  static const CopyCheck check{"gpu.copies",
                               {{"to GPU", "GB/s"},
                                {"from GPU", "GB/s"},
                                {"to and from GPU", "GB/s"},
                                {"GPU to GPU", "GB/s"},
                                {"between GPUs", "GB/s"},
                                {"to all GPUs", "GB/s"},
                                {"from all GPUs", "GB/s"},
                                {"among all GPUs", "GB/s"}},
                               outside_jobs,
                               Bytes{64 << 20},
                               6};
  return check;
}

const CopyCheck& copies_inside_gpus() {
  static const CopyCheck check{"gpu.memory", {{"copy", "GB/s"}}, inside_jobs, Bytes{256 << 20}, 1};
  return check;
}

std::string measure_copies(const CopyCheck& check, const std::string& question) {
  const json asked = json::parse(question);
  return measure_own_gpus([&](const OwnGpus& own, json& answer) {
    answer["rates"] = json::object();
    std::vector<CopyJob> jobs = check.jobs(static_cast<int>(own.gpus.size()));
    const std::size_t of_all = jobs.size();
    if (const std::set<std::string> only = asked.at("only"); !only.empty())
      std::erase_if(jobs, [&](const CopyJob& job) { return !only.contains(job.name()); });
    constexpr Bytes kOfSoftware{1 << 20};
    GpuCopyWork work;
    work.size = own.software ? kOfSoftware : size_that_fits(own.plugin, own.gpus, check.size);
    work.time = {asked.at("seconds").get<double>() / static_cast<double>(of_all)};
    if (own.software) work.time = {0}, work.fewest = 2;
    const std::unique_ptr<GpuCopies> copies = own.plugin.make_copies(work);
    for (const CopyJob& job : jobs) {
      json of_job = json::array();
      for (const GpuCopyRates& rates : copies->run(job.copies))
        of_job.push_back({{"GBps", rates.GBps}, {"wrong", rates.wrong_bytes}, {"direct", rates.direct}});
      answer["rates"][job.name()] = std::move(of_job);
    }
  });
}

}  // namespace polyring
