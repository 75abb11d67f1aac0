#include "collectives/transports/tcp.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>
#include <thread>

#include "collectives/catalogue.hpp"
#include "collectives/executor.hpp"
#include "collectives/payload.hpp"
#include "collectives/tcp/introduction.hpp"
#include "collectives/transports/threads.hpp"
#include "tests/collectives/sweep.hpp"
#include "topology/error.hpp"

namespace polyring {
namespace {

using Bytestrings = std::vector<std::vector<std::byte>>;

/// Where the ranks, as threads, come together.
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

class Together {
 public:
  explicit Together(int ranks, Seconds timeout = {30}) : assembly_(ranks), ranks_(ranks), timeout_(timeout) {}

  TcpGroup group(Rank rank) {
    const Seconds timeout = timeout_;
    const auto give_up = [rank, timeout](const std::string& what, const std::vector<Rank>&) {
      throw Error(ExitCode::timeout, fmt::format("rank {} waited {} for {}", rank, to_text(timeout), what));
    };
    const auto allgather = [this, rank](std::span<const std::byte> bytes) {
      return assembly_.allgather(rank, bytes);
    };
    return {
        rank, ranks_, {rank}, "127.0.0.1", fmt::format("node{}", rank), allgather, {timeout_, true, give_up}};
  }

  /// A rank's transport lives until all are done or have failed.
  void run(const std::function<void(Transport&)>& body) {
    run_ranks(ranks_, [&](ThreadTransport& threads) {
      const auto transport = make_tcp_transport(group(threads.rank()));
      try {
        body(*transport);
      } catch (...) {
        assembly_.allgather(threads.rank(), {});
        throw;
      }
      assembly_.allgather(threads.rank(), {});
    });
  }

  void barrier(Rank rank) { assembly_.allgather(rank, {}); }

 private:
  Assembly assembly_;
  int ranks_;
  Seconds timeout_;
};

std::vector<std::byte> content(std::size_t bytes, std::size_t seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t at = 0; at < bytes; ++at) data[at] = static_cast<std::byte>(at * 7 + at / 251 + seed * 31);
  return data;
}

/// Each must come exactly once, and no other.
void wait_for(Transport& transport, std::vector<Ticket> tickets) {
  std::vector<Ticket> done;
  while (done.size() < tickets.size()) transport.wait(done);
  std::sort(done.begin(), done.end());
  std::sort(tickets.begin(), tickets.end());
  EXPECT_EQ(done, tickets);
}

// Around what is read along with a header, a frame, and what the system takes at once.
const std::vector<std::size_t> kSizes{
    0, 1, 4079, 4080, 4081, 4096, 65536, 128 << 10, (128 << 10) + 1, 300'000, 1 << 20, 5 << 20};

TEST(Tcp, CarriesMessagesOfEverySizeBothWays) {
  Together(3).run([](Transport& transport) {
    const auto own = static_cast<std::size_t>(transport.rank());
    for (const std::size_t bytes : kSizes) {
      std::vector<std::vector<std::byte>> received(3, std::vector<std::byte>(bytes));
      const std::vector<std::byte> sent = content(bytes, own);
      std::vector<Ticket> tickets;
      for (Rank peer = 0; peer < 3; ++peer) {
        if (peer == transport.rank()) continue;
        const auto place = static_cast<std::size_t>(peer);
        transport.receive(peer, 1, received[place], 2 * place);
        transport.send(peer, 1, sent, 2 * place + 1);
        tickets.insert(tickets.end(), {2 * place, 2 * place + 1});
      }
      wait_for(transport, tickets);
      for (std::size_t peer = 0; peer < 3; ++peer) {
        if (peer == own) continue;
        EXPECT_EQ(received[peer], content(bytes, peer)) << bytes << " bytes";
      }
    }
  });
}

TEST(Tcp, KeepsTheOrderWithinATagAndTagsApart) {
  constexpr std::size_t kTags = 7;
  const std::size_t messages = 20 * kSizes.size();
  Together(2).run([&](Transport& transport) {
    const Rank peer = 1 - transport.rank();
    std::vector<std::vector<std::byte>> sent, received(messages);
    std::vector<Ticket> tickets;
    for (std::size_t number = 0; number < messages; ++number) {
      sent.push_back(content(kSizes[number % (kSizes.size() - 1)], number));
      received[number].resize(sent.back().size());
    }
    for (std::size_t number = 0; number < messages; ++number) {
      tickets.push_back(2 * number);
      transport.send(peer, static_cast<int>(number % kTags), sent[number], tickets.back());
    }
    // Tag by tag, the last one first: most come before they are awaited.
    for (std::size_t tag = kTags; tag-- > 0;) {
      for (std::size_t number = tag; number < messages; number += kTags) {
        tickets.push_back(2 * number + 1);
        transport.receive(peer, static_cast<int>(tag), received[number], tickets.back());
      }
      if (tag == kTags / 2) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    wait_for(transport, tickets);
    for (std::size_t number = 0; number < messages; ++number) {
      ASSERT_EQ(received[number], sent[number]) << "message " << number;
    }
  });
}

/// A message that is there before its receive, and one of which a part is.
TEST(Tcp, HandsOutWhatCameEarly) {
  for (const std::size_t bytes : kSizes) {
    Together(2).run([&](Transport& transport) {
      std::vector<std::byte> first(bytes), second(bytes);
      if (transport.rank() == 0) {
        first = content(bytes, 1);
        transport.send(1, 0, first, 1);
        transport.send(1, 5, {}, 2);
        wait_for(transport, {1, 2});
      } else {
        // Of a large message much has come, but not all, when a small one behind it has.
        transport.receive(0, 5, {}, 1);
        wait_for(transport, {1});
        transport.receive(0, 0, first, 2);
        wait_for(transport, {2});
        EXPECT_EQ(first, content(bytes, 1));
      }
    });
  }
}

TEST(Tcp, LetsAShortMessagePassALongOne) {
  Together(2).run([](Transport& transport) {
    const std::vector<std::byte> long_one = content(64 << 20, 1);
    std::vector<std::byte> received(transport.rank() == 1 ? long_one.size() : 0);
    if (transport.rank() == 0) {
      transport.send(1, 0, long_one, 1);
      transport.send(1, 1, {}, 2);
      wait_for(transport, {1, 2});
    } else {
      transport.receive(0, 0, received, 1);
      transport.receive(0, 1, {}, 2);
      std::vector<Ticket> done;
      while (done.size() < 2) transport.wait(done);
      EXPECT_THAT(done, ::testing::ElementsAre(2, 1));
      EXPECT_EQ(received, long_one);
    }
  });
}

class TcpEveryAlgorithm : public ::testing::TestWithParam<std::string> {};

TEST_P(TcpEveryAlgorithm, GivesTheExactResult) {
  for (const int ranks : {1, 2, 3, 4, 6}) {
    Together(ranks).run([&](Transport& transport) {
      for (const Plan& plan : testing::plans_of(find_algorithm(GetParam()), ranks, 4)) {
        for (const Count count : {Count{0}, Count{1}, Count{7 * ranks + 3}, Count{100'001}}) {
          if (count > 1000 && plan.chunk.value != 0) continue;  // chunks of two elements
          const Payload payload(ElementKind::float32, ReduceOp::sum, ranks);
          const Memory data = transport.allocate({static_cast<std::uint64_t>(count) * 4});
          payload.fill(transport.rank(), data.get(), count);
          Executor executor(make_schedule(plan, ranks, count, 4), ElementKind::float32, ReduceOp::sum,
                            transport);
          executor.run(data.get(), data.get());
          ASSERT_EQ(payload.wrong(data.get(), count), 0) << to_text(plan) << " of " << count;
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, TcpEveryAlgorithm, ::testing::ValuesIn(testing::algorithm_names()),
                         [](const auto& row) { return testing::identifier(row.param); });

/// What a rank is told when it waits in vain.
std::string complaint(Transport& transport) {
  std::vector<Ticket> done;
  try {
    for (;;) transport.wait(done);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::timeout);
    return error.what();
  }
}

TEST(Tcp, NamesThePeerThatCloses) {
  for (const bool sends : {false, true}) {
    Together together(3);
    run_ranks(3, [&](ThreadTransport& threads) {
      auto transport = make_tcp_transport(together.group(threads.rank()));
      if (threads.rank() == 2) {
        transport.reset();
      } else {
        std::vector<std::byte> data(32 << 20);
        if (sends) {
          transport->send(2, 0, data, 1);
        } else {
          transport->receive(2, 0, data, 1);
        }
        EXPECT_THAT(complaint(*transport), ::testing::MatchesRegex("rank 2 \\(node2\\) has (clos|los).*"));
      }
      together.barrier(threads.rank());
    });
  }
}

TEST(Tcp, LetsAPeerGoOfWhomNothingIsAwaited) {
  Together together(3);
  run_ranks(3, [&](ThreadTransport& threads) {
    auto transport = make_tcp_transport(together.group(threads.rank()));
    std::vector<std::byte> data(1000);  // no more than the system takes from a peer that leaves
    if (threads.rank() == 2) {
      transport->send(0, 0, data, 1);
      wait_for(*transport, {1});
      transport.reset();
      together.barrier(2);
    } else {
      together.barrier(threads.rank());
      if (threads.rank() == 0) {
        transport->receive(2, 0, data, 1);
        wait_for(*transport, {1});
        transport->send(1, 0, data, 2);
      } else {
        transport->receive(0, 0, data, 2);
      }
      wait_for(*transport, {2});
    }
    together.barrier(threads.rank());
  });
}

TEST(Tcp, NamesThePeerThatSendsAnotherLength) {
  Together(2).run([](Transport& transport) {
    std::vector<std::byte> data(transport.rank() == 0 ? 100 : 99);
    if (transport.rank() == 0) {
      transport.send(1, 0, data, 1);
      wait_for(transport, {1});
    } else {
      transport.receive(0, 0, data, 1);
      EXPECT_THAT(complaint(transport),
                  ::testing::StartsWith("rank 0 (node0) has sent 100 bytes where 99 are awaited"));
    }
  });
}

/// Connects to a rank that listens, and says `words`.
int intrude(const Introduction& rank, std::span<const std::byte> words) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(rank.port));
  std::memcpy(&to.sin_addr, rank.address.data(), rank.address.size());
  const int stranger = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(stranger, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(write(stranger, words.data(), words.size()), static_cast<ssize_t>(words.size()));
  return stranger;
}

TEST(Tcp, DropsStrangers) {
  Together together(3);
  run_ranks(3, [&](ThreadTransport& threads) {
    const Rank own = threads.rank();
    TcpGroup group = together.group(own);
    std::vector<int> strangers;
    group.allgather = [&, inner = group.allgather, first = true](std::span<const std::byte> bytes) mutable {
      const Bytestrings all = inner(bytes);
      if (!std::exchange(first, false) || own == 0) return all;
      // Before any rank has connected: one says nothing, one nonsense, one has a wrong token of rank 0.
      Introduction zero;
      Introduction self;
      std::memcpy(&zero, all[0].data(), sizeof zero);
      std::memcpy(&self, all[static_cast<std::size_t>(own)].data(), sizeof self);
      strangers.push_back(intrude(zero, {}));
      strangers.push_back(intrude(zero, content(1000, 1)));
      const Greeting greeting{static_cast<std::uint64_t>(own), self.token, {zero.token[0], 0}};
      strangers.push_back(intrude(zero, bytes_of(greeting)));
      return all;
    };
    const auto transport = make_tcp_transport(group);
    std::vector<std::byte> data = content(1000, static_cast<std::size_t>(own));
    if (own == 0) {
      std::vector<std::byte> other(1000);
      transport->receive(1, 0, data, 1);
      transport->receive(2, 0, other, 2);
      wait_for(*transport, {1, 2});
      EXPECT_EQ(data, content(1000, 1));
      EXPECT_EQ(other, content(1000, 2));
    } else {
      transport->send(0, 0, data, 1);
      wait_for(*transport, {1});
    }
    for (const int stranger : strangers) {
      std::byte answer{};
      EXPECT_LE(read(stranger, &answer, 1), 0) << "a stranger had an answer";
      close(stranger);
    }
    together.barrier(own);
  });
}

TEST(Tcp, SaysOnAllRanksWhyTheyCannotBeConnected) {
  const auto reason = [](const std::function<void(TcpGroup&)>& spoil) {
    Together together(3);
    std::mutex mutex;
    std::vector<std::string> reasons;
    run_ranks(3, [&](ThreadTransport& threads) {
      TcpGroup group = together.group(threads.rank());
      group.limit = Seconds{0.5};
      spoil(group);
      try {
        make_tcp_transport(group);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::not_available);
        const std::lock_guard lock(mutex);
        reasons.emplace_back(error.what());
      }
    });
    EXPECT_EQ(reasons.size(), 3U);
    EXPECT_THAT(reasons, ::testing::Each(reasons.front()));
    return reasons.front();
  };
  EXPECT_THAT(reason([](TcpGroup& group) {
                if (group.rank == 1) group.address = "192.0.2.1";  // nobody has this one
              }),
              ::testing::HasSubstr("rank 1 (node1) cannot listen at 192.0.2.1: "));
  // Rank 1's address leads to where nobody listens, and to where another rank does.
  for (const bool nobody : {true, false}) {
    const std::string text = reason([&](TcpGroup& group) {
      group.allgather = [inner = group.allgather, nobody](std::span<const std::byte> bytes) {
        Bytestrings all = inner(bytes);
        if (all[1].size() != sizeof(Introduction)) return all;
        Introduction zero, one;
        std::memcpy(&zero, all[0].data(), sizeof zero);
        std::memcpy(&one, all[1].data(), sizeof one);
        one.port = nobody ? 1 : zero.port;
        all[1] = bytes_of(one);
        return all;
      };
    });
    EXPECT_THAT(text,
                ::testing::HasSubstr(nobody ? "rank 2 (node2) cannot reach rank 1 (node1) at 127.0.0.1:1: "
                                            : "rank 2 (node2) finds another program than rank 1 (node1) at"));
    EXPECT_THAT(text, ::testing::HasSubstr("--tcp-interface"));
  }
}

}  // namespace
}  // namespace polyring
