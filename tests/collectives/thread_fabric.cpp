// Ranks as threads of this process.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <condition_variable>
#include <exception>
#include <mutex>

#include "base/error.hpp"
#include "collectives/runtime/transports/composed.hpp"
#include "collectives/runtime/transports/threads.hpp"
#include "tests/collectives/fabric.hpp"

namespace polyring::testing {
namespace {

using Bytestrings = std::vector<std::vector<std::byte>>;

/// Where threads come together.
class Assembly {
 public:
  explicit Assembly(int ranks) : own_(static_cast<std::size_t>(ranks)) {}

  Bytestrings allgather(Rank rank, std::span<const std::byte> bytes) {
    std::unique_lock lock(mutex_);
    own_[static_cast<std::size_t>(rank)].assign(bytes.begin(), bytes.end());
    const std::size_t round = round_;
    if (++arrived_ == own_.size()) {
      all_ = own_;
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round; });
    return all_;  // of this round: the next one cannot end before this rank has come again
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Bytestrings own_;
  Bytestrings all_;
  std::size_t arrived_ = 0;
  std::size_t round_ = 0;
};

WaitRules rules_of(Rank rank, Seconds timeout) {
  return {timeout, true, [rank, timeout](const std::string& what, const std::vector<Rank>& whom) {
            throw Error(ExitCode::timeout, fmt::format("rank {} waited {} for {} of rank {}", rank,
                                                       to_text(timeout), what, fmt::join(whom, ", ")));
          }};
}

}  // namespace

std::vector<Fabric> fabrics() {
  std::vector<Fabric> all{{Fabric::Kind::threads}};
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
  Assembly assembly(ranks);
  ThreadGroup between(ranks, timeout);
  std::mutex mutex;
  std::exception_ptr first;
  run_ranks(ranks, [&](ThreadTransport& threads) {
    const Rank rank = threads.rank();
    const auto allgather = [&](std::span<const std::byte> bytes) { return assembly.allgather(rank, bytes); };
    std::unique_ptr<Transport> transport = make_near(fabric, rank, ranks, allgather, rules_of(rank, timeout));
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
    assembly.allgather(rank, {});
  });
  if (first) std::rethrow_exception(first);
}

void run_over_own(const Fabric& fabric, int ranks,
                  const std::function<void(std::unique_ptr<Transport>)>& body) {
  Assembly assembly(ranks);
  run_ranks(ranks, [&](ThreadTransport& threads) {
    const Rank rank = threads.rank();
    const auto allgather = [&](std::span<const std::byte> bytes) { return assembly.allgather(rank, bytes); };
    body(make_near(fabric, rank, ranks, allgather, rules_of(rank, Seconds{30})));
  });
}

}  // namespace polyring::testing
