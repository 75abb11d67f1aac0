// Ranks that find each other over TCP, and what happens to those that do not.
#include "collectives/runtime/bootstraps/tcp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/runtime/bootstraps/threads.hpp"
#include "collectives/runtime/transports/tcp.hpp"
#include "collectives/runtime/transports/threads.hpp"
#include "tests/collectives/fabric.hpp"
#include "tests/collectives/free_port.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Outcome {
  std::string sentence;  // empty: all went well
  ExitCode code = ExitCode::ok;
};

Outcome outcome_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.what(), error.code()};
  }
  return {};
}

/// Each group on a thread of its own.
std::vector<Outcome> start_all(const std::vector<TcpGroup>& groups,
                               const std::function<void(const TcpBootstrap&)>& body) {
  std::vector<std::future<Outcome>> running;
  for (const TcpGroup& group : groups) {
    running.push_back(std::async(std::launch::async, [&body, group] {
      return outcome_of([&] {
        const TcpBootstrap bootstrap(group);
        body(bootstrap);
      });
    }));
  }
  std::vector<Outcome> outcomes;
  for (std::future<Outcome>& one : running) outcomes.push_back(one.get());
  return outcomes;
}

std::vector<TcpGroup> group_of(int size, Seconds timeout = {30}) {
  const Endpoint root{"127.0.0.1", testing::free_port()};
  std::vector<TcpGroup> groups;
  for (Rank rank = 0; rank < size; ++rank) groups.push_back({root, "secret", rank, size, timeout});
  return groups;
}

std::vector<std::string> sentences(const std::vector<Outcome>& outcomes) {
  std::vector<std::string> all;
  for (const Outcome& outcome : outcomes) all.push_back(outcome.sentence);
  return all;
}

std::vector<std::byte> bytes_of(Rank rank, std::size_t round) {
  return std::vector<std::byte>(index(rank) * 1000 * round, static_cast<std::byte>(index(rank) + round));
}

TEST(TcpBootstrap, GathersBytesOfAnyLength) {
  for (const int size : {1, 2, 5}) {
    const auto outcomes = start_all(group_of(size), [&](const TcpBootstrap& bootstrap) {
      ASSERT_EQ(bootstrap.size(), size);
      for (const std::size_t round : {0U, 1U, 100U}) {
        const auto all = bootstrap.allgather(bytes_of(bootstrap.rank(), round));
        ASSERT_EQ(all.size(), index(size));
        for (Rank rank = 0; rank < size; ++rank) EXPECT_EQ(all[index(rank)], bytes_of(rank, round));
      }
      bootstrap.barrier();
    });
    EXPECT_THAT(sentences(outcomes), Each(IsEmpty()));
  }
}

TEST(TcpBootstrap, WaitsForARootThatComesLate) {
  std::vector<TcpGroup> groups = group_of(3);
  auto others = std::async(std::launch::async, [&] {
    return start_all({groups[1], groups[2]}, [](const TcpBootstrap& bootstrap) { bootstrap.barrier(); });
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto root = start_all({groups[0]}, [](const TcpBootstrap& bootstrap) { bootstrap.barrier(); });
  EXPECT_THAT(sentences(root), Each(IsEmpty()));
  EXPECT_THAT(sentences(others.get()), Each(IsEmpty()));
}

TEST(TcpBootstrap, NamesThoseWhoDoNotCome) {
  const std::vector<TcpGroup> groups = group_of(4, Seconds{2});
  for (const Outcome& outcome : start_all({groups[0], groups[2]}, [](const TcpBootstrap&) {})) {
    EXPECT_EQ(outcome.code, ExitCode::timeout);
    EXPECT_THAT(outcome.sentence, HasSubstr("for rank 1, rank 3;"));
  }
  const auto alone = start_all({groups[1]}, [](const TcpBootstrap&) {});
  EXPECT_EQ(alone[0].code, ExitCode::timeout);
  EXPECT_THAT(alone[0].sentence, AllOf(HasSubstr("rank 0 at 127.0.0.1"), HasSubstr("refused")));
}

TEST(TcpBootstrap, TellsAllWhoIsSilentLater) {
  const auto outcomes = start_all(group_of(3, Seconds{2}), [](const TcpBootstrap& bootstrap) {
    if (bootstrap.rank() == 1) return std::this_thread::sleep_for(std::chrono::seconds(6));
    bootstrap.barrier();
  });
  for (const std::size_t rank : {0U, 2U}) {
    EXPECT_EQ(outcomes[rank].code, ExitCode::timeout);
    EXPECT_THAT(outcomes[rank].sentence, HasSubstr("for rank 1;")) << "rank " << rank;
  }
}

TEST(TcpBootstrap, TellsAllWhoHasLeft) {
  const auto outcomes = start_all(group_of(3), [](const TcpBootstrap& bootstrap) {
    if (bootstrap.rank() != 1) bootstrap.barrier();
  });
  for (const std::size_t rank : {0U, 2U})
    EXPECT_THAT(outcomes[rank].sentence, HasSubstr("the connection to rank 1 was lost")) << "rank " << rank;
}

TEST(TcpBootstrap, RefusesRanksThatCannotBe) {
  std::vector<TcpGroup> twice = group_of(3);
  twice[2].rank = 1;
  const auto outcomes = start_all(twice, [](const TcpBootstrap&) {});
  EXPECT_EQ(outcomes[0].code, ExitCode::usage);
  EXPECT_THAT(sentences(outcomes), Each(HasSubstr("rank 1 came twice")));

  std::vector<TcpGroup> unlike = group_of(2);
  unlike[1].size = 3;
  EXPECT_THAT(sentences(start_all(unlike, [](const TcpBootstrap&) {})),
              Each(HasSubstr("rank 1 expects 3 ranks, and rank 0 expects 2")));

  for (const Rank rank : {-1, 2})
    EXPECT_THAT(outcome_of([&] {
                  TcpBootstrap({{"127.0.0.1", 1}, "", rank, 2, {}});
                }).sentence,
                HasSubstr("there is no rank"));
}

TEST(TcpBootstrap, TurnsStrangersAway) {
  std::vector<TcpGroup> groups = group_of(2);
  TcpGroup stranger = groups[1];
  stranger.secret = "another";
  stranger.timeout = {0.3};
  auto outcomes = std::async(std::launch::async, [&] {
    return start_all(groups, [](const TcpBootstrap& bootstrap) {
      bootstrap.barrier();
      if (bootstrap.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      bootstrap.barrier();
    });
  });
  const Socket silent = begin_connecting(groups[0].root);  // and says nothing
  // While rank 0 listens it is turned away, and later it finds nobody.
  EXPECT_THAT(start_all({stranger}, [](const TcpBootstrap&) {})[0].code,
              ::testing::AnyOf(ExitCode::mpi, ExitCode::timeout));
  EXPECT_THAT(sentences(outcomes.get()), Each(IsEmpty()));
}

TEST(TcpBootstrap, FailsForEverOnceItHasFailed) {
  const auto outcomes = start_all(group_of(2, Seconds{2}), [](const TcpBootstrap& bootstrap) {
    if (bootstrap.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(5));
    const Outcome first = outcome_of([&] { bootstrap.barrier(); });
    EXPECT_NE(first.code, ExitCode::ok);
    EXPECT_EQ(outcome_of([&] { bootstrap.barrier(); }).sentence, first.sentence);
  });
  EXPECT_THAT(sentences(outcomes), Each(IsEmpty()));
}

TEST(TcpBootstrap, SaysWhenItsPortIsTaken) {
  const Listener other("", 0, 0);
  const Outcome outcome = outcome_of([&] {
    TcpBootstrap({{"127.0.0.1", other.port()}, "", 0, 2, Seconds{1}});
  });
  EXPECT_EQ(outcome.code, ExitCode::not_available);
  EXPECT_THAT(outcome.sentence, HasSubstr("choose another port"));
}

TEST(Endpoint, IsAHostAndAPort) {
  EXPECT_EQ(parse_endpoint("node1:4711"), (Endpoint{"node1", 4711}));
  EXPECT_EQ(to_text(parse_endpoint("10.0.0.1:65535")), "10.0.0.1:65535");
  for (const char* text : {"", ":", "node1", "node1:", ":80", "node1:0", "node1:65536", "node1:8x", "::1:80",
                           "node1:-1", "node1:99999999999"})
    EXPECT_EQ(outcome_of([&] { parse_endpoint(text); }).code, ExitCode::usage) << text;
  EXPECT_THAT(outcome_of([] { parse_endpoint("[::1]:4717"); }).sentence, HasSubstr("IPv6 is not supported"));
}

TEST(Socket, TellsWhichOfTwoWasClosedFirst) {
  Listener listener("127.0.0.1", 0, 7);
  std::vector<Socket> calling;
  std::vector<Listener::Peer> peers;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    calling.push_back(begin_connecting({"127.0.0.1", listener.port()}));
    const std::vector<std::byte> greeting = Listener::greeting(7, rank, 0);
    std::size_t written = 0;
    while (written < greeting.size())
      written += write_some(calling.back(), std::span(greeting).subspan(written)).bytes;
    while (peers.size() <= rank)
      for (Listener::Peer& peer : listener.accept()) peers.push_back(std::move(peer));
  }
  constexpr std::chrono::milliseconds kBetween{50};
  calling[1].close();
  std::this_thread::sleep_for(kBetween);
  calling[0].close();
  std::byte said{};
  for (const Listener::Peer& peer : peers)
    while (!read_some(peer.socket, std::span(&said, 1)).ended) std::this_thread::yield();
  const std::chrono::milliseconds later = since_last_heard(peers[0].socket);
  EXPECT_GE(since_last_heard(peers[1].socket), later + kBetween / 2);
}

TEST(TcpTransport, SaysOnAllRanksWhereOneCannotListen) {
  ThreadTeam team(3);
  run_ranks(3, [&](ThreadTransport& threads) {
    const ThreadBootstrap bootstrap(team, threads.rank());
    TcpOptions options;
    options.interface = threads.rank() == 1 ? "nosuch0" : "lo";
    const Outcome outcome = outcome_of([&] { make_tcp_transport(bootstrap, options, {}); });
    EXPECT_EQ(outcome.code, ExitCode::not_available);
    EXPECT_THAT(outcome.sentence, AllOf(HasSubstr("rank 1:"), HasSubstr("no interface nosuch0")));
  });
}

constexpr testing::Fabric kTcp{testing::Fabric::Kind::tcp};

void wait_for_all(Transport& transport, std::size_t operations) {
  std::vector<Ticket> done;
  while (done.size() < operations) transport.wait(done);
}

TEST(TcpTransport, NamesTheRankThatHasLeft) {
  for (const bool sends : {false, true}) {
    testing::run_over_own(kTcp, 2, [&](std::unique_ptr<Transport> transport) {
      std::byte first{};
      if (transport->rank() == 1) {
        transport->send(0, 0, {&first, 1}, 1);
        return wait_for_all(*transport, 1);
      }
      transport->receive(1, 0, {&first, 1}, 1);
      wait_for_all(*transport, 1);
      std::vector<std::byte> data(std::size_t{1} << 20);
      const Outcome outcome = outcome_of([&] {
        transport->attempt([&] {
          if (sends) {
            transport->send(1, 0, data, 2);
          } else {
            transport->receive(1, 0, data, 2);
          }
          wait_for_all(*transport, 1);
        });
      });
      EXPECT_EQ(outcome.code, ExitCode::mpi);
      EXPECT_THAT(outcome.sentence, HasSubstr("the connection to rank 1 at 127.0.0.1:"));
      EXPECT_THAT(transport->awaited(), IsEmpty());
    });
  }
}

/// Rank 3 does nothing. Rank 2 waits for it, rank 1 for rank 2, and rank 0 for rank 1: all name rank 3.
TEST(TcpTransport, NamesTheFirstCauseOnAllRanks) {
  constexpr int kRanks = 4;
  ThreadTeam team(kRanks);
  run_ranks(kRanks, [&](ThreadTransport& threads) {
    const ThreadBootstrap bootstrap(team, threads.rank());
    TcpOptions options;
    options.interface = "lo";
    WaitRules rules{threads.rank() == kRanks - 2 ? Seconds{0.2} : Seconds{60}, true,
                    [](const std::string&, const std::vector<Rank>& whom) {
                      throw Error(ExitCode::timeout, fmt::format("waited in vain for rank {}", whom.front()));
                    }};
    const std::unique_ptr<Transport> transport = make_tcp_transport(bootstrap, options, rules);
    // Connections exist before anybody fails.
    const Rank next = (threads.rank() + 1) % kRanks;
    const Rank before = (threads.rank() + kRanks - 1) % kRanks;
    std::byte out{};
    std::byte in{};
    transport->send(next, 0, {&out, 1}, 1);
    transport->receive(before, 0, {&in, 1}, 2);
    wait_for_all(*transport, 2);
    if (threads.rank() < kRanks - 1) {
      std::vector<std::byte> data(100);
      const Outcome outcome = outcome_of([&] {
        transport->attempt([&] {
          transport->receive(next, 1, data, 3);
          wait_for_all(*transport, 1);
        });
      });
      EXPECT_EQ(outcome.code, ExitCode::timeout);
      EXPECT_THAT(outcome.sentence, HasSubstr("waited in vain for rank 3"));
      const bool told = threads.rank() < kRanks - 2;
      EXPECT_EQ(outcome.sentence.starts_with("rank 2 has failed: "), told) << outcome.sentence;
    }
    bootstrap.barrier();
  });
}

/// Nobody who needs nothing more of it is disturbed.
TEST(TcpTransport, LetsOthersGoOnWhoDoNotNeedTheRankThatFails) {
  constexpr int kRanks = 3;
  std::atomic<bool> failed{false};
  testing::run_over_own(kTcp, kRanks, [&](std::unique_ptr<Transport> transport) {
    std::byte out{};
    std::byte in{};
    const Rank rank = transport->rank();
    for (Rank peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      transport->send(peer, 0, {&out, 1}, 1);
      transport->receive(peer, 0, {&in, 1}, 2);
    }
    wait_for_all(*transport, 4);
    if (rank == 2) {
      outcome_of([&] { transport->attempt([] { throw Error(ExitCode::internal, "out of luck"); }); });
      failed = true;
      return;
    }
    while (!failed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::vector<std::byte> data(std::size_t{1} << 20);
    transport->send(1 - rank, 1, data, 3);
    std::vector<std::byte> got(data.size());
    transport->receive(1 - rank, 1, got, 4);
    wait_for_all(*transport, 2);
    const Outcome outcome = outcome_of([&] {
      transport->attempt([&] {
        transport->receive(2, 1, got, 5);
        wait_for_all(*transport, 1);
      });
    });
    EXPECT_EQ(outcome.code, ExitCode::internal);
    EXPECT_THAT(outcome.sentence, HasSubstr("rank 2 has failed: out of luck"));
  });
}

/// All that rank 0 has sent arrives, though it has left long ago.
TEST(TcpTransport, LetsARankLeaveFirst) {
  std::atomic<bool> gone{false};
  testing::run_over_own(kTcp, 2, [&](std::unique_ptr<Transport> transport) {
    std::vector<std::byte> data(std::size_t{32} << 10, std::byte{7});
    if (transport->rank() == 0) {
      std::byte ready{};
      transport->receive(1, 1, {&ready, 1}, 1);
      for (std::size_t number = 0; number < 8; ++number) transport->send(1, 0, data, 2);
      wait_for_all(*transport, 9);
      transport.reset();
      gone = true;
      return;
    }
    std::byte ready{};
    transport->send(0, 1, {&ready, 1}, 1);
    wait_for_all(*transport, 1);
    while (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (std::size_t number = 0; number < 8; ++number) {
      std::fill(data.begin(), data.end(), std::byte{});
      transport->receive(0, 0, data, 2);
      wait_for_all(*transport, 1);
      EXPECT_THAT(data, Each(std::byte{7}));
    }
  });
}

TEST(TcpTransport, SaysWhenBothEndsHaveOtherLengthsInMind) {
  for (const std::size_t sent : {std::size_t{10}, std::size_t{1} << 20}) {
    for (const bool early : {false, true}) {
      testing::run_over(kTcp, 2, [&](Transport& transport) {
        std::vector<std::byte> data(sent);
        std::byte ready{};
        if (transport.rank() == 0) {
          transport.receive(1, 1, {&ready, 1}, 1);
          wait_for_all(transport, 1);
          const Outcome ignored = outcome_of([&] {
            transport.attempt([&] {
              transport.send(1, 0, data, 2);
              transport.send(1, 2, {&ready, 1}, 3);
              wait_for_all(transport, 2);
            });
          });
          return;
        }
        const Outcome outcome = outcome_of([&] {
          transport.attempt([&] {
            data.resize(sent - 1);
            transport.send(0, 1, {&ready, 1}, 1);
            if (!early) transport.receive(0, 0, data, 2);
            transport.receive(0, 2, {&ready, 1}, 3);
            wait_for_all(transport, 2);
            if (early) transport.receive(0, 0, data, 2);
            wait_for_all(transport, 1);
          });
        });
        EXPECT_EQ(outcome.code, ExitCode::wrong_result);
        EXPECT_THAT(outcome.sentence,
                    HasSubstr(fmt::format("rank 0 sends {} bytes where {} are expected", sent, sent - 1)));
      });
    }
  }
}

}  // namespace
}  // namespace polyring
