// One rank of stream_test.cpp: software_gpu_stream_rank PORT RANK SIZE WHAT. Says "ok", why a collective
// cannot be on a stream, or what failed.
//
//   collectives  the cases of so many ranks, by exchanges and by messages
//   one-gpu      all ranks on the first GPU
//   killed       rank 1 ends before the second collective
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/cuda/transport.hpp"
#include "collectives/runtime/bootstraps/tcp.hpp"
#include "collectives/runtime/transports/tcp.hpp"
#include "tests/software_gpu/stream_ranks.hpp"

namespace polyring::testing {
namespace {

void expect_same(const RankOfGpu& rank, const Case& test, bool in_place, bool by_messages) {
  const std::vector<std::byte> expected = on_host(test, rank.transport.size())[index(rank.rank())];
  OnStream on(rank, test, nullptr, [by_messages](Rank) { return !by_messages; });
  const Buffers buffers(rank, test, in_place);
  on.run(buffers);
  if (buffers.output() != expected) throw Error(ExitCode::wrong_result, to_text(test));
  rank.bootstrap.barrier();  // nobody gives back what others have mapped
}

void expect_the_hosts_bits(const RankOfGpu& rank) {
  const int ranks = rank.transport.size();
  bool in_place = false;
  for (const Algorithm& algorithm : algorithms()) {
    in_place = !in_place;
    const Plan plan{std::string(algorithm.name), {ranks}, {}, 2, Bytes{64}, {}};
    expect_same(rank, {plan, {Collective::allreduce, 77, ElementKind::float32, ReduceOp::sum}}, in_place,
                true);
    expect_same(rank, {plan, {Collective::allreduce, 300, ElementKind::float16, ReduceOp::avg}}, !in_place,
                false);
    expect_same(rank, {plan, {Collective::allreduce, 77, ElementKind::int64, ReduceOp::max}}, in_place,
                false);
  }
}

void end_early(const RankOfGpu& rank) {
  const Case test{{"ring", {rank.transport.size()}, {}, 1, {}, {}}, {.count = 100}};
  OnStream on(rank, test, nullptr, [](Rank) { return true; });
  const Buffers buffers(rank, test, false);
  on.run(buffers);
  rank.bootstrap.barrier();
  if (rank.rank() == 1) std::_Exit(0);
  on.collective.launch(buffers.from, buffers.to, on.stream.get());
  on.collective.wait(Seconds{0.5});
}

std::string run(const Bootstrap& bootstrap, const std::string& what) {
  const int ranks = bootstrap.size();
  const RankHosts hosts{std::vector<int>(index(ranks), 0), {"host0"}};
  const WaitRules rules{Seconds{20},
                        true,
                        [](const std::string& on, const std::vector<Rank>&) {
                          throw Error(ExitCode::timeout, "waited for " + on);
                        },
                        {}};
  TcpOptions tcp;
  tcp.interface = "lo";
  tcp.several_hosts = false;
  const GpuTransport made = cuda::make_gpu_transport(make_tcp_transport(bootstrap, tcp, rules), bootstrap,
                                                     hosts, what == "one-gpu" ? 0 : bootstrap.rank(), rules);
  const RankOfGpu rank{bootstrap, *made.transport, dynamic_cast<cuda::RankGpu&>(*made.transport)};
  if (what == "killed") end_early(rank);
  if (what == "one-gpu") {
    std::string why_not;
    cuda::make_gpu_collective(*made.transport, {"ring", {ranks}, {}, 1, {}, {}}, {.count = 10}, why_not);
    return why_not;
  }
  expect_the_hosts_bits(rank);
  bootstrap.barrier();
  return "ok";
}

}  // namespace
}  // namespace polyring::testing

int main(int argc, char** argv) {
  using namespace polyring;
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const TcpBootstrap bootstrap({{"127.0.0.1", std::stoi(arguments.at(0))},
                                  "streams",
                                  std::stoi(arguments.at(1)),
                                  std::stoi(arguments.at(2)),
                                  {20}});
    std::puts(polyring::testing::run(bootstrap, arguments.at(3)).c_str());
    return 0;
  } catch (const Error& error) {
    std::puts(error.what());
    return static_cast<int>(error.code());
  }
}
