// Collectives on the memory of GPUs, by the plug-in that ships: on real GPUs, or on a software GPU where
// CTest puts its libraries before CUDA's. Their results must have the host's bits.
#include "collectives/cuda/gpu.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/runtime/bootstraps/threads.hpp"
#include "collectives/runtime/communicator.hpp"
#include "collectives/runtime/transports/threads.hpp"
#include "tests/software_gpu/cases.hpp"

namespace polyring {
namespace {

using testing::bytes;
using testing::Case;
using testing::cases_for;
using testing::input_of;
using testing::on_host;

constexpr int kMostRanks = 6;

/// Ranks as threads, each with a communicator on its GPU.
void run_on_gpus(int ranks, bool one_gpu, const std::function<void(Communicator&)>& body) {
  GpuPlugin& plugin = need_gpu_plugin();
  const std::vector<GpuDevice> gpus = plugin.gpus();
  ThreadTeam team(ranks);
  run_ranks(ranks, [&](ThreadTransport& threads) {
    const ThreadBootstrap bootstrap(team, threads.rank());
    const GpuDevice& gpu = gpus[one_gpu ? 0 : index(threads.rank()) % gpus.size()];
    CommunicatorOptions options;
    // A software GPU needs cores of the host's.
    options.rules =
        WaitRules{Seconds{20},
                  true,
                  [&](const std::string& what, const std::vector<Rank>& whom) {
                    throw Error(ExitCode::timeout, fmt::format("rank {} waited for {} of {}", threads.rank(),
                                                               what, fmt::join(whom, ", ")));
                  },
                  {}};
    options.device = to_gpu(plugin, bootstrap, gpu);
    Communicator communicator(bootstrap, options);
    EXPECT_EQ(communicator.joined().fallback, "");
    body(communicator);
    bootstrap.barrier();
  });
}

/// Out of place, and in place.
void expect_same(Communicator& communicator, const Case& test, const std::vector<std::byte>& expected) {
  const int ranks = communicator.size();
  Transport& transport = communicator.transport();
  const std::vector<std::byte> input = input_of(test, communicator.rank(), ranks);
  const std::size_t own = bytes(communicator.rank() * (test.what.count / ranks), test.what.kind);
  PersistentCollective collective = communicator.prepare(test.what, test.plan);
  const Memory first = communicator.allocate({std::max(input.size(), expected.size())});
  const Memory second = communicator.allocate({expected.size()});
  for (const bool in_place : {false, true}) {
    if (in_place && test.what.collective == Collective::alltoall) continue;
    std::byte* from = first.get();
    std::byte* to = in_place ? first.get() : second.get();
    if (in_place && input.size() < expected.size()) from += own;
    if (in_place && input.size() > expected.size()) to += own;
    transport.upload(to, std::vector(expected.size(), std::byte{0xff}));
    transport.upload(from, input);
    collective.run(from, to);
    std::vector<std::byte> output(expected.size());
    transport.download(output, to);
    ASSERT_EQ(output, expected) << to_text(test) << (in_place ? ", in place" : "") << ", on rank "
                                << communicator.rank() << " of " << ranks;
  }
}

void expect_the_hosts_bits(int ranks, bool one_gpu) {
  const std::vector<Case> cases = cases_for(ranks, kMostRanks);
  std::vector<std::vector<std::vector<std::byte>>> expected;
  for (const Case& test : cases) expected.push_back(on_host(test, ranks));
  run_on_gpus(ranks, one_gpu, [&](Communicator& communicator) {
    for (std::size_t i = 0; i < cases.size(); ++i)
      expect_same(communicator, cases[i], expected[i][index(communicator.rank())]);
  });
}

class OnGpus : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, OnGpus, ::testing::Range(1, kMostRanks + 1));

TEST_P(OnGpus, HasTheHostsBitsWithAGpuForEachRank) { expect_the_hosts_bits(GetParam(), false); }
TEST_P(OnGpus, HasTheHostsBitsWithOneGpuForAll) { expect_the_hosts_bits(GetParam(), true); }

}  // namespace
}  // namespace polyring
