// Collectives that are enqueued on CUDA streams: on real GPUs, or on a software GPU. Their results must have
// the host's bits.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/process.hpp"
#include "bench/measure/payload.hpp"
#include "collectives/cuda/check.hpp"
#include "collectives/cuda/gpu_collective.hpp"
#include "collectives/cuda/nccl.hpp"
#include "collectives/cuda/owners.hpp"
#include "collectives/cuda/stream_words.hpp"
#include "collectives/cuda/transport.hpp"
#include "collectives/runtime/bootstraps/threads.hpp"
#include "collectives/runtime/transports/threads.hpp"
#include "tests/collectives/free_port.hpp"
#include "tests/software_gpu/cases.hpp"
#include "tests/software_gpu/stream_ranks.hpp"

namespace polyring::testing {
namespace {

using cuda::check;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kMostRanks = 6;

struct World {
  int ranks = 1;
  bool one_gpu = false;
  int per_host = 0;  // 0: all
  Seconds limit{20};
};

RankHosts hosts_of(const World& world) {
  const int per_host = world.per_host == 0 ? world.ranks : world.per_host;
  RankHosts hosts;
  for (Rank rank = 0; rank < world.ranks; ++rank) hosts.of_rank.push_back(rank / per_host);
  for (int host = 0; host <= hosts.of_rank.back(); ++host) hosts.names.push_back(fmt::format("host{}", host));
  return hosts;
}

/// Ranks as threads.
void run_on_gpus(const World& world, const std::function<void(const RankOfGpu&)>& body) {
  int gpus = 0;
  ASSERT_EQ(cudaGetDeviceCount(&gpus), cudaSuccess);
  ThreadTeam team(world.ranks);
  ThreadGroup group(world.ranks);
  run_ranks(world.ranks, [&](ThreadTransport& threads) {
    const ThreadBootstrap bootstrap(team, threads.rank());
    const WaitRules rules{world.limit,
                          true,  // a software GPU needs cores of the host's
                          [&](const std::string& what, const std::vector<Rank>& whom) {
                            throw Error(ExitCode::timeout,
                                        fmt::format("rank {} waited for {} of {}", threads.rank(), what,
                                                    fmt::join(whom, ", ")));
                          },
                          {}};
    const GpuTransport made =
        cuda::make_gpu_transport(std::make_unique<ThreadTransport>(group, threads.rank()), bootstrap,
                                 hosts_of(world), world.one_gpu ? 0 : threads.rank() % gpus, rules);
    body({bootstrap, *made.transport, dynamic_cast<cuda::RankGpu&>(*made.transport)});
    bootstrap.barrier();
  });
}

/// Out of place, and in place twice.
void expect_same(const RankOfGpu& rank, const Case& test, const std::vector<std::byte>& expected) {
  const auto collective = must_make(rank, test);
  for (const bool in_place : {false, true}) {
    if (in_place && test.what.collective == Collective::alltoall) continue;
    Buffers buffers(rank, test, in_place);
    for (int time = 0; time < (in_place ? 2 : 1); ++time) {
      if (time > 0) {
        buffers.fill();
        rank.bootstrap.barrier();  // an upload is no part of the collective
      }
      collective->start(buffers.from, buffers.to);
      collective->wait();
      ASSERT_EQ(buffers.output(), expected)
          << to_text(test) << (in_place ? ", in place" : "") << ", time " << time << ", on rank "
          << rank.rank() << " of " << rank.transport.size();
      EXPECT_GT(collective->last_us(), 0);
    }
  }
}

/// One of `every` so many; all if this process has its share of the whole product.
std::vector<Case> some_of(const std::vector<Case>& all, std::size_t every) {
  if (case_share()) return all;
  std::vector<Case> some;
  for (std::size_t i = 0; i < all.size(); i += every) some.push_back(all[i]);
  return some;
}

void expect_the_hosts_bits(const World& world, std::size_t every = 1) {
  const std::vector<Case> cases = some_of(cases_for(world.ranks, kMostRanks), every);
  std::vector<std::vector<std::vector<std::byte>>> expected;
  for (const Case& test : cases) expected.push_back(on_host(test, world.ranks));
  run_on_gpus(world, [&](const RankOfGpu& rank) {
    for (std::size_t i = 0; i < cases.size(); ++i)
      expect_same(rank, cases[i], expected[i][index(rank.rank())]);
  });
}

class OnStreams : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, OnStreams, ::testing::Range(1, kMostRanks + 1));

TEST_P(OnStreams, HasTheHostsBitsWithAGpuForEachRank) { expect_the_hosts_bits({.ranks = GetParam()}); }
TEST_P(OnStreams, HasTheHostsBitsWithOneGpuForAll) {
  expect_the_hosts_bits({.ranks = GetParam(), .one_gpu = true});
}

/// With messages in place of all exchanges.
void expect_the_hosts_bits_by_messages(const World& world) {
  const std::vector<Case> cases = some_of(cases_for(world.ranks, kMostRanks), 2);
  std::vector<std::vector<std::vector<std::byte>>> expected;
  for (const Case& test : cases) expected.push_back(on_host(test, world.ranks));
  run_on_gpus(world, [&](const RankOfGpu& rank) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      OnStream on(rank, cases[i], nullptr, reaches_nobody);
      for (const bool in_place : {false, true}) {
        if (in_place && cases[i].what.collective == Collective::alltoall) continue;
        const Buffers buffers(rank, cases[i], in_place);
        on.run(buffers);
        ASSERT_EQ(buffers.output(), expected[i][index(rank.rank())])
            << to_text(cases[i]) << (in_place ? ", in place" : "") << ", on rank " << rank.rank() << " of "
            << world.ranks;
      }
    }
  });
}

TEST_P(OnStreams, HasTheHostsBitsByMessagesWithAGpuForEachRank) {
  expect_the_hosts_bits_by_messages({.ranks = GetParam()});
}
TEST_P(OnStreams, HasTheHostsBitsByMessagesWithOneGpuForAll) {
  expect_the_hosts_bits_by_messages({.ranks = GetParam(), .one_gpu = true});
}

bool has_gpus(int ranks) {
  int gpus = 0;
  return cudaGetDeviceCount(&gpus) == cudaSuccess && gpus >= ranks;
}

bool has_nccl() { return NcclLibrary::of_process().found(); }

class OnHosts : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, OnHosts, ::testing::Values(2, 4, 6));

TEST_P(OnHosts, HasTheHostsBitsWithNcclBetweenHosts) {
  if (!has_gpus(GetParam()) || !has_nccl()) GTEST_SKIP() << "needs NCCL, and a GPU for each rank";
  expect_the_hosts_bits({.ranks = GetParam(), .per_host = GetParam() == 2 ? 1 : 2}, 3);
}

/// Of many chunks, in any order of ranks.
Case large_case(std::string_view algorithm, int ranks) {
  const Count count = 40 * ranks + 3;
  return {{std::string(algorithm), {ranks}, {}, 3, Bytes{static_cast<std::uint64_t>(8 * ranks)}},
          {Collective::allreduce, count, ElementKind::float32, ReduceOp::sum}};
}

/// Messages alone, of two ranks.
cuda::StreamPlan plan_of(Bytes chunk) {
  const Schedule schedule = make_schedule({"ring", {2}, {}, 1, chunk, {}}, 2, 100, 4);
  const StaticOrder order = order_of(schedule, 0, reaches_nobody, Partials::in_output);
  return cuda::make_stream_plan(schedule, order, ElementKind::float32, ReduceOp::sum, Partials::in_output);
}

template <typename Step>
std::ptrdiff_t count_of(const cuda::StreamPlan& plan) {
  return std::ranges::count_if(plan.steps,
                               [](const auto& step) { return std::holds_alternative<Step>(step); });
}

TEST(StreamPlan, HasTwoStreamsWhereFoldsOverlapWithMessages) {
  const cuda::StreamPlan one_chunk = plan_of({});
  EXPECT_EQ(count_of<cuda::ForkStep>(one_chunk), 0);
  EXPECT_EQ(count_of<cuda::JoinStep>(one_chunk), 0);
  const cuda::StreamPlan many = plan_of(Bytes{40});
  const std::ptrdiff_t folds = count_of<cuda::ReduceStep>(many);
  EXPECT_GT(folds, 4);
  EXPECT_EQ(count_of<cuda::ForkStep>(many), folds);
  EXPECT_EQ(count_of<cuda::MarkStep>(many), folds);
  EXPECT_GE(count_of<cuda::JoinStep>(many), 2);
  // At the end nothing is left aside.
  const auto last = std::ranges::find_if(many.steps.rbegin(), many.steps.rend(), [](const auto& step) {
    return std::holds_alternative<cuda::JoinStep>(step);
  });
  EXPECT_EQ(std::get<cuda::JoinStep>(*last).batch, static_cast<std::size_t>(folds));
}

TEST(StreamCollective, SaysWhyItCannotBe) {
  run_on_gpus({.ranks = 2, .per_host = 1}, [](const RankOfGpu& rank) {
    const auto schedule =
        cuda::stream_schedule(rank.gpu, large_case("ring", 2).plan, large_case("ring", 2).what);
    EXPECT_EQ(cuda::why_not_on_stream(rank.gpu, schedule, true), "");
    EXPECT_EQ(cuda::why_not_on_stream(rank.gpu, schedule, false),
              fmt::format("rank {} does not reach the GPU memory of rank {}, and there is no NCCL",
                          rank.rank(), 1 - rank.rank()));
  });
}

/// Several launches of two collectives one after the other; each takes the result of the one before.
TEST(StreamCollective, FollowsOthersWithoutWaiting) {
  constexpr int kRanks = 3;
  for (const bool one_gpu : {false, true}) {
    run_on_gpus({.ranks = kRanks, .one_gpu = one_gpu}, [](const RankOfGpu& rank) {
      Case test = large_case("multi-ring", kRanks);
      test.what.kind = ElementKind::int64;
      test.what.op = ReduceOp::sum;
      Case other = large_case("ring", kRanks);
      other.what = test.what;
      OnStream first(rank, test, nullptr, [](Rank) { return true; });
      OnStream second(rank, other, nullptr, reaches_nobody);
      const Buffers buffers(rank, test, true);
      std::vector<std::byte> start = buffers.output();
      std::vector<std::int64_t> values(start.size() / sizeof(std::int64_t), rank.rank() + 1);
      rank.transport.upload(buffers.to, std::as_bytes(std::span(values)));
      for (int turn = 0; turn < 10; ++turn) {  // on two streams, each behind the other
        first.collective.launch(buffers.to, buffers.to, first.stream.get());
        second.collective.launch(buffers.to, buffers.to,
                                 turn % 3 == 0 ? first.stream.get() : second.stream.get());
      }
      second.collective.wait(Seconds{20});
      rank.transport.download(std::as_writable_bytes(std::span(values)), buffers.to);
      std::int64_t expected = 6;
      for (int more = 1; more < 20; ++more) expected *= kRanks;
      EXPECT_THAT(values, ::testing::Each(expected));
    });
  }
}

TEST(StreamCollective, IsCapturedOnBuffersThatItKnows) {
  constexpr int kRanks = 3;
  for (const bool by_messages : {false, true}) {
    run_on_gpus({.ranks = kRanks}, [by_messages](const RankOfGpu& rank) {
      Case test = large_case("multi-ring", kRanks);
      test.what.kind = ElementKind::int64;
      OnStream on(rank, test, nullptr, [by_messages](Rank) { return !by_messages; });
      const Buffers buffers(rank, test, true);
      const cudaStream_t stream = on.stream.get();
      const auto capture = [&](int launches) {
        cudaGraph_t graph = nullptr;
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin a capture");
        std::string refusal;
        try {
          for (int launch = 0; launch < launches; ++launch)
            on.collective.launch(buffers.to, buffers.to, stream);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ExitCode::usage);
          refusal = error.what();
        }
        check(cudaStreamEndCapture(stream, &graph), "end a capture");
        return std::pair(graph, refusal);
      };
      EXPECT_THAT(capture(1).second, HasSubstr("launch it once, then capture"));
      on.run(buffers);

      const cudaGraph_t graph = capture(2).first;
      cudaGraphExec_t executable = nullptr;
      check(cudaGraphInstantiate(&executable, graph, 0), "instantiate a graph");
      std::vector<std::int64_t> values(index(test.what.count), rank.rank() + 1);
      rank.transport.upload(buffers.to, std::as_bytes(std::span(values)));
      for (int replay = 0; replay < 3; ++replay) check(cudaGraphLaunch(executable, stream), "launch a graph");
      on.collective.launch(buffers.to, buffers.to, stream);
      on.collective.wait(Seconds{20});
      rank.transport.download(std::as_writable_bytes(std::span(values)), buffers.to);
      EXPECT_THAT(values, ::testing::Each(std::int64_t{6 * 729}));
      check(cudaGraphExecDestroy(executable), "destroy a graph");
      check(cudaGraphDestroy(graph), "destroy a graph");
    });
  }
}

TEST(StreamCollective, IsOneKernelWhereThePayloadIsSmall) {
  run_on_gpus({.ranks = 2}, [](const RankOfGpu& rank) {
    for (const bool in_place : {false, true}) {
      const Case test{{"one-shot", {2}, {}, 1, {}, {}}, {.count = 100}};
      OnStream on(rank, test, nullptr, [](Rank) { return true; });
      const Buffers buffers(rank, test, in_place);
      on.run(buffers);
      cudaGraph_t graph = nullptr;
      std::size_t nodes = 0;
      check(cudaStreamBeginCapture(on.stream.get(), cudaStreamCaptureModeThreadLocal), "begin a capture");
      on.collective.launch(buffers.from, buffers.to, on.stream.get());
      check(cudaStreamEndCapture(on.stream.get(), &graph), "end a capture");
      check(cudaGraphGetNodes(graph, nullptr, &nodes), "count what a graph does");
      EXPECT_EQ(nodes, 1u);
      check(cudaGraphDestroy(graph), "destroy a graph");
    }
  });
}

TEST(StreamCollective, NamesARankThatDoesNotLaunch) {
  constexpr int kRanks = 3;
  for (const bool by_messages : {false, true}) {
    // The others' ends do not end the one that waits for them, nor each other.
    run_on_gpus({.ranks = kRanks, .limit = Seconds{5}}, [by_messages](const RankOfGpu& rank) {
      OnStream on(rank, large_case("one-shot", kRanks), nullptr,
                  [by_messages](Rank) { return !by_messages; });
      const Buffers buffers(rank, large_case("one-shot", kRanks), false);
      on.run(buffers);
      rank.bootstrap.barrier();
      if (rank.rank() != 1) {
        on.collective.launch(buffers.from, buffers.to, on.stream.get());
        std::string sentence;
        try {
          on.collective.wait(Seconds{0.2});
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ExitCode::timeout);
          sentence = error.what();
        }
        EXPECT_THAT(sentence,
                    AllOf(HasSubstr(fmt::format("GPU {} of rank {}", rank.gpu.device(), rank.rank())),
                          HasSubstr("allreduce by one-shot"), HasSubstr("rank 1 (host0) did not come"),
                          ::testing::Not(HasSubstr(fmt::format("rank {} (", 2 - rank.rank())))));
        EXPECT_THROW(on.collective.launch(buffers.from, buffers.to, on.stream.get()), Error);
      }
      rank.bootstrap.barrier();
    });
  }
}

/// Two entries of one round change places on one rank.
void swap_two(StaticOrder& order) {
  for (std::size_t i = 0; i + 1 < order.entries.size(); ++i) {
    const auto& entry = order.entries[i];
    const auto& next = order.entries[i + 1];
    const auto& sends = order.step(entry).sends;
    const auto& others = order.step(next).sends;
    if (entry.round != next.round || sends.empty() || others.empty()) continue;
    if (sends[0].peer != others[0].peer || sends[0].slice.count == others[0].slice.count) continue;
    return std::swap(order.entries[i], order.entries[i + 1]);
  }
  FAIL() << "there are no two such steps";
}

TEST(StreamCollective, FindsTwoSwappedStepsOverNccl) {
  if (!has_gpus(2) || !has_nccl()) GTEST_SKIP() << "needs NCCL, and a GPU for each rank";
  std::array<std::string, 2> sentences;
  run_on_gpus({.ranks = 2, .per_host = 1, .limit = Seconds{10}}, [&](const RankOfGpu& rank) {
    std::string why_not;
    NcclCommunicator* const nccl = rank.gpu.nccl(why_not);
    ASSERT_NE(nccl, nullptr) << why_not;
    Case test = large_case("ring", 2);
    test.plan.chunk = {};
    cuda::StreamSchedule schedule = OnStream::schedule(rank, test, reaches_nobody);
    if (rank.rank() == 1) swap_two(schedule.order);
    const cuda::Stream stream = cuda::make_stream();
    cuda::StreamCollective collective(rank.gpu, nccl, std::move(schedule));
    const Buffers buffers(rank, test, false);
    rank.bootstrap.barrier();
    try {
      collective.launch(buffers.from, buffers.to, stream.get());
      collective.wait(Seconds{10});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::nccl) << error.what();
      sentences[index(rank.rank())] = error.what();
    }
    rank.bootstrap.barrier();
  });
  EXPECT_THAT(sentences[0] + sentences[1], HasSubstr("unequal counts"));
}

/// What the ranks of stream_rank.cpp print, each a process. The program lies beside this one, wherever both
/// are.
std::vector<ProcessResult> run_processes_of_ranks(int ranks, const std::string& what) {
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("software_gpu_stream_rank");
  const int port = testing::free_port();
  std::vector<std::vector<std::string>> programs;
  for (Rank rank = 0; rank < ranks; ++rank) {
    programs.push_back({"env", fmt::format("PMI_RANK={}", rank), program, fmt::to_string(port),
                        fmt::to_string(rank), fmt::to_string(ranks), what});
  }
  return run_processes(programs, Seconds{60});
}

TEST(StreamProcesses, HaveTheHostsBits) {
  if (!has_gpus(3)) GTEST_SKIP() << "needs 3 GPUs";
  for (const ProcessResult& result : run_processes_of_ranks(3, "collectives"))
    EXPECT_EQ(result.output, "ok\n") << result.errors;
}

TEST(StreamProcesses, CannotShareAGpu) {
  for (const ProcessResult& result : run_processes_of_ranks(2, "one-gpu")) {
    EXPECT_EQ(result.output, "on rank 0: ranks 0 and 1 share a GPU in different processes\n")
        << result.errors;
  }
}

TEST(StreamProcesses, NameOneThatIsKilled) {
  if (!has_gpus(3)) GTEST_SKIP() << "needs 3 GPUs";
  const std::vector<ProcessResult> results = run_processes_of_ranks(3, "killed");
  for (const Rank rank : {0, 2}) {
    const ProcessResult& result = results[index(rank)];
    EXPECT_EQ(result.exit_code, static_cast<int>(ExitCode::timeout));
    EXPECT_THAT(result.output, HasSubstr("rank 1 (host0) did not come to a step")) << result.errors;
  }
}

}  // namespace
}  // namespace polyring::testing
