#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.hpp"
#include "simulation/vendors/nccl_tuner.hpp"
#include "simulation/vendors/open_mpi.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "tests/simulation/clusters.hpp"
#include "topology/presets.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string failure(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(VendorRun, OfAnotherNameIsRefused) {
  EXPECT_THAT(failure([] { vendor_run("ring", preset("minsky", 1), Bytes{1024}); }), HasSubstr("nccl, mpi"));
}

TEST(VendorRun, OfTooManyRanksIsRefused) {
  const Cluster cluster = with_ranks(preset("minsky", 1), (1 << 17) + 4);
  for (const char* vendor : {"nccl", "mpi"}) {
    EXPECT_THAT(failure([&] { vendor_run(vendor, cluster, Bytes{1024}); }),
                HasSubstr("over 131076 ranks takes too much memory to simulate; use at most 131072"));
  }
}

// The thresholds of ompi_coll_tuned_allreduce_intra_dec_fixed in Open MPI 4.1.
TEST(OpenMpi, DecidesAtItsThresholds) {
  using enum OpenMpiAllreduce;
  struct Threshold {
    int ranks;
    std::uint64_t bytes;
    OpenMpiAllreduce below;
    OpenMpiAllreduce from;
  };
  for (const Threshold& at : {Threshold{2, 8, ring, recursive_doubling},
                              {3, 65536, ring, segmented_ring},
                              {3, 262144, segmented_ring, rabenseifner},
                              {4, 16, ring, recursive_doubling},
                              {7, 8192, recursive_doubling, rabenseifner},
                              {8, 8192, recursive_doubling, rabenseifner},
                              {16, 4096, recursive_doubling, rabenseifner},
                              {32, 128, segmented_ring, rabenseifner},
                              {64, 262144, recursive_doubling, rabenseifner},
                              {128, 131072, nonoverlapping, recursive_doubling},
                              {255, 262144, recursive_doubling, rabenseifner},
                              {256, 4096, nonoverlapping, rabenseifner},
                              {512, 16384, recursive_doubling, rabenseifner},
                              {2048, 4096, segmented_ring, recursive_doubling},
                              {27648, 32768, recursive_doubling, rabenseifner}}) {
    EXPECT_EQ(open_mpi_allreduce(at.ranks, {at.bytes - 1}), at.below) << at.ranks << ", " << at.bytes;
    EXPECT_EQ(open_mpi_allreduce(at.ranks, {at.bytes}), at.from) << at.ranks << ", " << at.bytes;
  }
}

constexpr double kMemory = 120e9;
constexpr double kStaging = 30e9;

/// uniform() with links to the package, and memory, of known speed.
Cluster with_memory(int hosts, int gpus) {
  Cluster cluster = uniform(hosts, gpus);
  Machine& machine = cluster.groups.front().machine;
  machine.packages.front().memory_bandwidth = {kMemory};
  for (Link& link : machine.links) {
    if (link.from.kind == DeviceKind::gpu && link.to.kind == DeviceKind::package) link.bandwidth = {kStaging};
  }
  return cluster;
}

TEST(MpiRun, EqualsItsClosedForms) {
  const Bytes large{64 << 20};
  const double bytes = static_cast<double>(large.value);
  // One GPU a host: Rabenseifner over the NICs; a process reduces at a third of its memory.
  const VendorRun far = mpi_run(with_memory(8, 1), large);
  EXPECT_EQ(far.choice, "Rabenseifner");
  const double once = 2 * bytes / kStaging;
  const double moved = bytes * 7 / 8;
  EXPECT_NEAR(vendor_time(far, large).value, once + 2 * (3 * kLatency + moved / kNic) + moved / (kMemory / 3),
              1e-9);

  // Four GPUs on one package: each has a quarter of the memory, for a read and a write.
  const VendorRun near = mpi_run(with_memory(1, 4), large);
  EXPECT_NEAR(near.once.value, 2 * bytes / (kMemory / 4), 1e-12) << "memory, not the links, is shared here";
  const double local = bytes * 3 / 4;
  EXPECT_NEAR(vendor_time(near, large).value,
              near.once.value + 2 * local / (kMemory / 4 / 2) + local / (kMemory / 4 / 3), 1e-9);

  const Bytes small{1024};
  const VendorRun doubling = mpi_run(with_memory(8, 1), small);
  EXPECT_EQ(doubling.choice, "recursive doubling");
  EXPECT_NEAR(vendor_time(doubling, small).value,
              2 * 1024 / kStaging + 3 * (kLatency + 1024 / kNic + 1024 / (kMemory / 3)), 1e-12);
}

TEST(MpiRun, SendsToNeighboursFirst) {
  // With 4 GPUs a host a quarter of the payload crosses hosts; halving from the far end would send four times
  // that.
  const Bytes payload{64 << 20};
  const VendorRun run = mpi_run(with_memory(4, 4), payload);
  const double far = 4 * static_cast<double>(payload.value) / 4 * 3 / 4;
  EXPECT_LT(vendor_time(run, payload).value - run.once.value, 2 * far / kNic + 2 * 0.02);
  EXPECT_GT(vendor_time(run, payload).value - run.once.value, 2 * far / kNic);
}

TEST(MpiRun, RefusesAGpuWithoutAPathToHostMemory) {
  Cluster cluster = with_memory(1, 2);
  std::erase_if(cluster.groups.front().machine.links, [](const Link& link) {
    return link.to == DeviceId{DeviceKind::package, 0};
  });
  EXPECT_THAT(failure([&] { mpi_run(cluster, {1024}); }), HasSubstr("no path from gpu0 to a package"));
}

/// uniform() as a DGX of P100s would count: NVLinks between all GPUs.
Cluster p100(int hosts, int gpus) {
  Cluster cluster = uniform(hosts, gpus);
  for (Gpu& gpu : cluster.groups.front().machine.gpus) gpu.model = "Tesla P100-SXM2-16GB";
  return cluster;
}

NcclSystem minsky_like(int hosts) {
  NcclSystem system;
  system.ranks = 4 * hosts;
  system.hosts = hosts;
  system.channels = 2;
  system.in_host = gigabytes_per_second(32);
  system.between_hosts = gigabytes_per_second(24);
  return system;
}

NcclEstimate estimate(const NcclSystem& system, NcclAlgorithm algorithm, NcclProtocol protocol,
                      Bytes payload) {
  for (const NcclEstimate& each : nccl_estimates(system, payload)) {
    if (each.algorithm == algorithm && each.protocol == protocol) return each;
  }
  ADD_FAILURE() << "no such estimate";
  return {};
}

// The formulas of published.json, in numbers: 4 ranks in one host, 32 in eight.
TEST(NcclTuner, EstimatesAsItsFormulasDo) {
  const NcclEstimate ring = estimate(minsky_like(1), NcclAlgorithm::ring, NcclProtocol::simple, {1 << 20});
  EXPECT_NEAR(ring.latency.value, 1e-6 * (8.4 + 6 * 5.7), 1e-15);
  EXPECT_NEAR(ring.bandwidth.value, 32e9 * 4 / 6, 1);
  const NcclEstimate far = estimate(minsky_like(8), NcclAlgorithm::ring, NcclProtocol::ll, {1024});
  EXPECT_NEAR(far.latency.value, 1e-6 * (6.6 + (62 - 14) * 1.0 + 14 * 2.7), 1e-15);
  EXPECT_NEAR(far.bandwidth.value, 24e9 / 4 * 32 / 62, 1);
  const NcclEstimate tree = estimate(minsky_like(8), NcclAlgorithm::tree, NcclProtocol::ll, {1024});
  EXPECT_NEAR(tree.latency.value, 1e-6 * (6.8 + 2 * (3 * 1.0 + 3 * 5.0)), 1e-15);
}

TEST(NcclTuner, ChoosesByHopsForSmallPayloadsAndByBandwidthForLargeOnes) {
  for (const int hosts : {1, 8, 64}) {
    EXPECT_EQ(nccl_choice(minsky_like(hosts), {1024}).protocol, NcclProtocol::ll) << hosts;
    EXPECT_EQ(nccl_choice(minsky_like(hosts), {256 << 20}).protocol, NcclProtocol::simple) << hosts;
  }
  EXPECT_EQ(nccl_choice(minsky_like(64), {1024}).algorithm, NcclAlgorithm::tree);
  EXPECT_EQ(nccl_choice(minsky_like(4), {256 << 20}).algorithm, NcclAlgorithm::ring);
  EXPECT_EQ(nccl_choice(minsky_like(1), {256 << 20}).algorithm, NcclAlgorithm::ring);
}

TEST(NcclTuner, TakesLl128OnlyWhereItIsEnabled) {
  NcclSystem system = minsky_like(4);
  system.capability = 80;
  for (const NcclEstimate& each : nccl_estimates(system, {1 << 16}))
    EXPECT_NE(each.protocol, NcclProtocol::ll128);
  system.ll128 = true;
  EXPECT_EQ(nccl_estimates(system, {1 << 16}).size(), 6u);
}

TEST(NcclTuner, PrefersTheRingForLongerAsHostsAreFewer) {
  const auto first_ring = [](int hosts) {
    std::uint64_t bytes = 64;
    while (bytes < (std::uint64_t{1} << 40) &&
           nccl_choice(minsky_like(hosts), {bytes}).algorithm != NcclAlgorithm::ring)
      bytes *= 2;
    return bytes;
  };
  EXPECT_LE(first_ring(4), first_ring(16));
  EXPECT_LT(first_ring(16), first_ring(64));
}

TEST(NcclRun, OfARingTakesWhatItsTunerExpects) {
  // The bandwidths differ by what the fabric's way crosses; with one GPU a host only the NICs count.
  const Bytes payload{256 << 20};
  for (const Cluster& cluster : {p100(4, 1), p100(1, 4), p100(3, 1)}) {
    const VendorRun run = nccl_run(cluster, payload);
    ASSERT_EQ(run.choice, "ring, Simple");
    ASSERT_THAT(run.inputs.front().fact, HasSubstr("expected"));
    const double n = cluster.ranks();
    const bool far = cluster.host_count() > 1;
    const double hop = far ? 14.0 * 1.9e-6 : 3.4e-6;
    const double base = far ? 8.4 * 1.9e-6 : 8.4e-6;
    // A P100's NVLinks count 18 for 20 GB/s, and a mesh of them gives its ring the width of all.
    const double bandwidth = far ? kNic : 3 * kLink * 18 / 20;
    EXPECT_NEAR(vendor_time(run, payload).value /
                    (base + 2 * (n - 1) * (hop + static_cast<double>(payload.value) / n / bandwidth)),
                1, 1e-9)
        << n;
  }
}

TEST(NcclRun, OfATreeTakesItsHopsForASmallPayload) {
  const Bytes payload{64};
  const VendorRun run = nccl_run(p100(8, 4), payload);
  ASSERT_EQ(run.choice, "tree, LL");
  EXPECT_NEAR(vendor_time(run, payload).value, 1e-6 * (6.8 + 2 * (3 * 0.6 + 3 * 5.0)), 2e-7);
}

TEST(NcclTuner, ExpectsMoreTimeForMore) {
  for (const int hosts : {1, 2, 16, 64}) {
    double before = 0;
    for (std::uint64_t bytes = 64; bytes <= (std::uint64_t{1} << 32); bytes *= 2) {
      const double time = nccl_choice(minsky_like(hosts), {bytes}).time({bytes}).value;
      EXPECT_GT(time, before) << hosts << " hosts, " << bytes << " bytes";
      before = time;
    }
  }
}

// Where NCCL goes over from one choice to another, its own estimates decide and not the simulation.
TEST(NcclRun, TakesLongerForMoreWhileItsChoiceStays) {
  const Cluster minsky = preset("minsky", 1);
  int compared = 0;
  for (const int gpus : {4, 8, 64, 256}) {
    double before = 0;
    std::string choice;
    for (std::uint64_t bytes = 1024; bytes <= (std::uint64_t{1} << 30); bytes *= 4) {
      const VendorRun run = nccl_run(with_ranks(minsky, gpus), {bytes});
      const double time = vendor_time(run, {bytes}).value;
      if (run.choice == choice) {
        EXPECT_GT(time, before) << gpus << " GPUs, " << bytes << " bytes: " << choice;
        ++compared;
      }
      before = time;
      choice = run.choice;
    }
  }
  EXPECT_GT(compared, 20);
}

TEST(NcclRun, IsNeverFasterThanTheNicsAllow) {
  const Bytes payload{100 << 20};
  const double bytes = static_cast<double>(payload.value);
  for (const int hosts : {2, 8, 64}) {
    const Cluster cluster = preset("minsky", hosts);
    EXPECT_GT(vendor_time(nccl_run(cluster, payload), payload).value,
              2.0 * (hosts - 1) / hosts * bytes / 24.2e9);
  }
}

TEST(NcclRun, FollowsTheRingsOfACubeMesh) {
  // Four NVLinks of 18 GB/s a GPU, as NCCL counts: 72 GB/s around the ring.
  const Bytes payload{256 << 20};
  const double least = 2.0 * 7 / 8 * static_cast<double>(payload.value) / 72e9;
  const double time = vendor_time(nccl_run(preset("dgx1-p100", 1), payload), payload).value;
  EXPECT_GT(time, least);
  EXPECT_LT(time, 1.05 * least);
}

TEST(NcclRun, KnowsGpusByTheirNameAndByTheCapabilityInAFile) {
  const Bytes payload{256 << 20};
  const auto time = [&](const char* model) {
    Cluster cluster = p100(1, 4);
    for (Gpu& gpu : cluster.groups.front().machine.gpus) gpu.model = model;
    return vendor_time(nccl_run(cluster, payload), payload).value;
  };
  EXPECT_EQ(time("NVIDIA A100-SXM4-40GB"), time("device 10de:20b5, sm 80"));
  EXPECT_EQ(time("NVIDIA GB200"), time("NVIDIA B300 SXM6 AC"));
  EXPECT_EQ(time("NVIDIA A40"), time("sm 86"));
  EXPECT_LT(time("NVIDIA A40"), time("NVIDIA A100-SXM4-40GB"));  // 12 of 14.0625 GB/s, 20 of 25
}

TEST(NcclRun, RefusesWhatItsTableDoesNotKnow) {
  Cluster unknown = uniform(1, 4);
  for (Gpu& gpu : unknown.groups.front().machine.gpus) gpu.model = "GeForce 256";
  EXPECT_THAT(failure([&] { nccl_run(unknown, {1024}); }), HasSubstr("an NVLink of 'GeForce 256'"));

  Cluster uneven = p100(1, 4);
  uneven.groups.push_back(p100(1, 2).groups.front());
  EXPECT_THAT(failure([&] { nccl_run(uneven, {1024}); }), HasSubstr("equally many GPUs"));
}

TEST(NcclRun, TakesThePciRowWithoutNvlink) {
  Cluster cluster = uniform(1, 2);
  for (Gpu& gpu : cluster.groups.front().machine.gpus) gpu.model = "GeForce 256";
  for (Link& link : cluster.groups.front().machine.links) {
    link.kind = LinkKind::pcie;
    link.bandwidth = {15.75e9};
  }
  const Bytes payload{256 << 20};
  const VendorRun run = nccl_run(cluster, payload);
  EXPECT_THAT(run.choice, StartsWith("ring"));
  EXPECT_NEAR(
      vendor_time(run, payload).value / (1e-6 * (8.4 + 2 * 5.7) + static_cast<double>(payload.value) / 12e9),
      1, 1e-9);
}

TEST(VendorRun, OfOneRankTakesNoTime) {
  EXPECT_EQ(vendor_time(nccl_run(p100(1, 1), {1024}), {1024}).value, 0);
  EXPECT_EQ(vendor_time(mpi_run(p100(1, 1), {1024}), {1024}).value, 0);
}

/// Against the file of facts, where there is one.
TEST(NcclTuner, AgreesWithTheFactsFile) {
  const char* path = std::getenv("POLYRING_PUBLISHED");
  if (path == nullptr) GTEST_SKIP() << "POLYRING_PUBLISHED does not name a published.json";
  std::ifstream file(path);
  const auto facts = nlohmann::json::parse(file).at("nccl_tuning_model");
  NcclSystem one = minsky_like(1);
  one.capability = 70;
  one.ll128 = true;
  NcclSystem two = minsky_like(2);
  two.capability = 70;
  two.ll128 = true;
  for (const auto protocol : {NcclProtocol::ll, NcclProtocol::ll128, NcclProtocol::simple}) {
    const std::string name(to_text(protocol));
    const auto near = [&](const NcclSystem& system) {
      return estimate(system, NcclAlgorithm::ring, protocol, {64});
    };
    EXPECT_NEAR(near(one).base.value * 1e6, facts.at("ring_base_us").at(name), 1e-9) << name;
    EXPECT_NEAR(near(one).hop_in_host.value * 1e6, facts.at("ring_hop_us").at("PCI").at(name), 1e-9) << name;
    EXPECT_NEAR(near(two).hop_between_hosts.value * 1e6, facts.at("ring_hop_us").at("NET").at(name), 1e-9)
        << name;
    NcclSystem nvlink = one;
    nvlink.nvlink = true;
    EXPECT_NEAR(near(nvlink).hop_in_host.value * 1e6, facts.at("ring_hop_us").at("NVLINK").at(name), 1e-9)
        << name;
  }
}

TEST(VendorGroups, OfAllRanksAreTheWholeCall) {
  const Bytes payload{64 << 20};
  for (const char* vendor : {"nccl", "mpi"}) {
    const Cluster cluster = vendor == std::string("nccl") ? p100(4, 4) : with_memory(4, 4);
    const VendorRun whole = vendor_run(vendor, cluster, payload);
    const VendorRun groups = vendor_run(vendor, cluster, payload, {Collective::allreduce, 16, 1});
    EXPECT_EQ(groups.plan, whole.plan) << vendor;
    EXPECT_EQ(vendor_time(groups, payload), vendor_time(whole, payload)) << vendor;
  }
}

TEST(VendorGroups, LieOnHostsAsTheirStrideSays) {
  const Cluster cluster = p100(4, 4);
  const auto shape = [&](int members, int stride) {
    const GroupShape of = shape_of({Collective::allreduce, members, stride}, cluster);
    return std::pair(of.in_host, of.hosts);
  };
  EXPECT_EQ(shape(2, 1), std::pair(2, 1));
  EXPECT_EQ(shape(2, 2), std::pair(2, 1));
  EXPECT_EQ(shape(8, 2), std::pair(2, 4));
  EXPECT_EQ(shape(4, 4), std::pair(1, 4));
  EXPECT_EQ(shape(2, 8), std::pair(1, 2));
  EXPECT_EQ(shape(16, 1), std::pair(4, 4));
}

TEST(NcclRun, OfGroupsSharesTheNicsThatEachGroupTakesForItsOwn) {
  const Bytes payload{256 << 20};
  const double bytes = static_cast<double>(payload.value);
  for (const auto& [collective, passes] :
       {std::pair(Collective::allreduce, 2), std::pair(Collective::reduce_scatter, 1),
        std::pair(Collective::allgather, 1)}) {
    // Four rings, of one GPU on each of four hosts, at once over one NIC a host.
    const VendorRun run = nccl_run(p100(4, 4), payload, {collective, 4, 4});
    ASSERT_EQ(run.choice, "ring, Simple");
    EXPECT_NEAR(vendor_time(run, payload).value /
                    (8.4 * 1.9e-6 + passes * 3 * (14.0 * 1.9e-6 + bytes / 4 / (kNic / 4))),
                1, 1e-9)
        << to_text(collective);
  }
}

TEST(NcclRun, OfAnAlltoallSendsToAllOthersAtOnce) {
  const Bytes payload{64 << 20};
  const VendorRun run = nccl_run(p100(4, 1), payload, {Collective::alltoall, 4, 1});
  EXPECT_NEAR(vendor_time(run, payload).value,
              8.4e-6 + 14.0e-6 + 3.0 / 4 * static_cast<double>(payload.value) / kNic, 1e-9);
}

TEST(NcclTuner, HasRingsAloneForHalvesOfAnAllreduce) {
  const auto estimates = nccl_estimates(minsky_like(4), {256 << 20}, Collective::allgather);
  const auto whole = nccl_estimates(minsky_like(4), {256 << 20});
  EXPECT_EQ(2 * estimates.size(), whole.size());
  for (const NcclEstimate& each : estimates) {
    EXPECT_EQ(each.algorithm, NcclAlgorithm::ring);
    for (const NcclEstimate& other : whole) {
      if (other.algorithm != each.algorithm || other.protocol != each.protocol) continue;
      EXPECT_NEAR(each.bandwidth.value / other.bandwidth.value, 2, 1e-12);
      EXPECT_NEAR((other.latency - other.base).value / (each.latency - each.base).value, 2, 1e-9);
    }
  }
}

TEST(MpiRun, OfAHalfTakesAHalfOfRabenseifner) {
  const Bytes large{64 << 20};
  const double bytes = static_cast<double>(large.value);
  const double moved = bytes * 7 / 8;
  const Cluster cluster = with_memory(8, 1);
  const VendorRun scatter = mpi_run(cluster, large, {Collective::reduce_scatter, 8, 1});
  EXPECT_NEAR(vendor_time(scatter, large).value,
              2 * bytes / kStaging + 3 * kLatency + moved / kNic + moved / (kMemory / 3), 1e-9);
  const VendorRun gather = mpi_run(cluster, large, {Collective::allgather, 8, 1});
  EXPECT_NEAR(vendor_time(gather, large).value, 2 * bytes / kStaging + 3 * kLatency + moved / kNic, 1e-9);
}

}  // namespace
}  // namespace polyring
