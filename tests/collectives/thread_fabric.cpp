// Ranks as threads of this process.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <mutex>

#include "base/error.hpp"
#include "collectives/runtime/bootstraps/threads.hpp"
#include "collectives/runtime/transports/composed.hpp"
#include "collectives/runtime/transports/tcp.hpp"
#include "collectives/runtime/transports/threads.hpp"
#include "tests/collectives/fabric.hpp"

namespace polyring::testing {
namespace {

WaitRules rules_of(Rank rank, Seconds timeout) {
  return {timeout, true, [rank, timeout](const std::string& what, const std::vector<Rank>& whom) {
            throw Error(ExitCode::timeout, fmt::format("rank {} waited {} for {} of rank {}", rank,
                                                       to_text(timeout), what, fmt::join(whom, ", ")));
          }};
}

TcpOptions tcp_options(const Fabric& fabric) {
  TcpOptions options;
  options.interface = "lo";
  if (fabric.pieces) {
    options.connections = 1;
    options.unasked = Bytes{testing::kShortPiece};
  }
  return options;
}

}  // namespace

std::vector<Fabric> fabrics() {
  std::vector<Fabric> all{{Fabric::Kind::threads}, {Fabric::Kind::tcp}, {Fabric::Kind::tcp}};
  all.back().pieces = true;
  for (const bool streaming : {false, true}) {
    for (const bool pieces : {false, true}) {
      all.push_back({Fabric::Kind::shared, Placement::one_host, streaming, pieces});
    }
  }
  for (const Placement placement :
       {Placement::halves, Placement::all_but_one, Placement::one_and_all, Placement::in_turn}) {
    all.push_back({Fabric::Kind::composed, placement});
  }
  return all;
}

void run_over(const Fabric& fabric, int ranks, const std::function<void(Transport&)>& body, Seconds timeout) {
  if (fabric.kind == Fabric::Kind::threads) return run_ranks(ranks, body, timeout);
  ThreadTeam team(ranks);
  ThreadGroup between(ranks, timeout);
  std::mutex mutex;
  std::exception_ptr first;
  run_ranks(ranks, [&](ThreadTransport& threads) {
    const Rank rank = threads.rank();
    const ThreadBootstrap bootstrap(team, rank);
    std::unique_ptr<Transport> transport;
    if (fabric.kind == Fabric::Kind::tcp) {
      transport = make_tcp_transport(bootstrap, tcp_options(fabric), rules_of(rank, timeout));
    } else {
      transport = make_near(fabric, bootstrap, rules_of(rank, timeout));
    }
    if (fabric.kind == Fabric::Kind::composed) {
      transport = compose(std::move(transport), std::make_unique<ThreadTransport>(between, rank),
                          rules_of(rank, timeout));
    }
    try {
      body(*transport);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
    bootstrap.barrier();
  });
  if (first) std::rethrow_exception(first);
}

void run_over_own(const Fabric& fabric, int ranks,
                  const std::function<void(std::unique_ptr<Transport>)>& body) {
  ThreadTeam team(ranks);
  run_ranks(ranks, [&](ThreadTransport& threads) {
    const ThreadBootstrap bootstrap(team, threads.rank());
    const WaitRules rules = rules_of(threads.rank(), Seconds{30});
    body(fabric.kind == Fabric::Kind::tcp ? make_tcp_transport(bootstrap, tcp_options(fabric), rules)
                                          : make_near(fabric, bootstrap, rules));
  });
}

}  // namespace polyring::testing
