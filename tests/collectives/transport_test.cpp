// What every transport must do, message by message. The suite of transport_execute_test.cpp goes on with
// whole allreduces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "tests/collectives/fabric.hpp"

namespace polyring {
namespace {

using testing::Fabric;

// Around a cache line, a page, and what is copied rather than read in place.
const std::vector<std::size_t> kSizes{0, 1, 63, 64, 65, 4095, 4096, 4097, std::size_t{1} << 20};

/// Memory of one of the kinds that users have.
class Buffer {
 public:
  enum class From { allocate, scratch, vector };
  static constexpr From kAll[] = {From::allocate, From::scratch, From::vector};

  Buffer(Transport& transport, From from, std::size_t bytes) : bytes_(bytes) {
    if (from == From::vector) {
      // Aligned for nothing.
      vector_.resize(bytes + 1);
      return;
    }
    memory_ = from == From::allocate ? transport.allocate({bytes}) : transport.scratch({bytes});
  }
  std::span<std::byte> span() { return {memory_ ? memory_.get() : vector_.data() + 1, bytes_}; }

 private:
  std::size_t bytes_;
  Memory memory_;
  std::vector<std::byte> vector_;
};

/// What rank `from` sends to rank `to` as its `number`th message.
void write(std::span<std::byte> data, Rank from, Rank to, std::size_t number) {
  constexpr std::size_t kPeriod = 1009;  // a prime: what is out of place shows
  const std::size_t first = std::min(data.size(), kPeriod);
  for (std::size_t at = 0; at < first; ++at) {
    data[at] = static_cast<std::byte>((at + at / 251) * 7 + number * 31 +
                                      static_cast<std::size_t>(from * 5 + to * 3));
  }
  for (std::size_t at = first; at < data.size(); at += kPeriod) {
    std::memcpy(&data[at], data.data(), std::min(kPeriod, data.size() - at));
  }
}

bool holds(std::span<const std::byte> data, Rank from, Rank to, std::size_t number) {
  std::vector<std::byte> expected(data.size());
  write(expected, from, to, number);
  return data.empty() || std::memcmp(data.data(), expected.data(), data.size()) == 0;
}

/// Waits for these tickets, in any order; each must come exactly once, and no other.
void wait_for(Transport& transport, std::vector<Ticket> tickets) {
  std::vector<Ticket> done;
  while (done.size() < tickets.size()) {
    const std::size_t before = done.size();
    transport.wait(done);
    ASSERT_GT(done.size(), before) << "wait() came back with nothing";
  }
  std::sort(done.begin(), done.end());
  std::sort(tickets.begin(), tickets.end());
  EXPECT_EQ(done, tickets);
}

class EveryTransport : public ::testing::TestWithParam<Fabric> {};

INSTANTIATE_TEST_SUITE_P(Fabrics, EveryTransport, ::testing::ValuesIn(testing::fabrics()),
                         [](const auto& row) { return row.param.name(); });

/// Everybody to everybody, both directions at once.
void exchange(Transport& transport, Buffer::From from, std::size_t bytes, bool receives_first) {
  const Rank own = transport.rank();
  std::map<Rank, Buffer> sent;
  std::map<Rank, Buffer> received;
  std::vector<Ticket> tickets;
  for (Rank peer = 0; peer < transport.size(); ++peer) {
    if (peer == own) continue;
    sent.emplace(peer, Buffer(transport, from, bytes));
    received.emplace(peer, Buffer(transport, from, bytes));
    write(sent.at(peer).span(), own, peer, bytes);
  }
  const auto post = [&](bool receives) {
    for (auto& [peer, buffer] : receives ? received : sent) {
      tickets.push_back(static_cast<Ticket>(2 * peer + (receives ? 1 : 0)));
      if (receives) {
        transport.receive(peer, 3, buffer.span(), tickets.back());
      } else {
        transport.send(peer, 3, buffer.span(), tickets.back());
      }
    }
  };
  post(receives_first);
  post(!receives_first);
  wait_for(transport, tickets);
  for (auto& [peer, buffer] : received) {
    EXPECT_TRUE(holds(buffer.span(), peer, own, bytes)) << bytes << " bytes from rank " << peer;
  }
}

TEST_P(EveryTransport, CarriesMessagesOfEverySizeBothWays) {
  testing::run_over(GetParam(), 3, [](Transport& transport) {
    for (const std::size_t bytes : kSizes) {
      for (const Buffer::From from : Buffer::kAll) {
        for (const bool receives_first : {true, false}) exchange(transport, from, bytes, receives_first);
      }
    }
  });
}

/// Until an empty message has come on a tag of its own.
void hear(Transport& transport, Rank from) {
  transport.receive(from, 99, {}, 1000);
  wait_for(transport, {1000});
}

TEST_P(EveryTransport, MatchesAReceiveThatIsPostedLongBeforeOrAfterItsSend) {
  testing::run_over(GetParam(), 2, [](Transport& transport) {
    for (const std::size_t bytes : kSizes) {
      Buffer buffer(transport, Buffer::From::allocate, bytes);
      if (transport.rank() == 0) {
        write(buffer.span(), 0, 1, 1);
        hear(transport, 1);
        transport.send(1, 0, buffer.span(), 1);
        wait_for(transport, {1});
        write(buffer.span(), 0, 1, 2);
        transport.send(1, 0, buffer.span(), 2);
        transport.send(1, 99, {}, 3);
        wait_for(transport, {2, 3});
      } else {
        transport.receive(0, 0, buffer.span(), 1);
        transport.send(0, 99, {}, 2);
        wait_for(transport, {1, 2});
        EXPECT_TRUE(holds(buffer.span(), 0, 1, 1)) << bytes << " bytes, awaited";
        hear(transport, 0);
        transport.receive(0, 0, buffer.span(), 3);
        wait_for(transport, {3});
        EXPECT_TRUE(holds(buffer.span(), 0, 1, 2)) << bytes << " bytes, come early";
      }
    }
  });
}

constexpr int kTags = 10;

std::size_t mixed_size(std::size_t number) { return kSizes[number * 5 % (kSizes.size() - 1)]; }

/// `messages` from this rank to the next, and as many from the one before: by tags in turn, of mixed sizes.
/// They are received tag by tag in another order, but in order within a tag.
void flood(Transport& transport, std::size_t messages, bool sends, bool receives) {
  const Rank own = transport.rank();
  const Rank to = (own + 1) % transport.size();
  const Rank from = (own + transport.size() - 1) % transport.size();
  std::vector<std::vector<std::byte>> sent(messages);
  std::vector<std::vector<std::byte>> received(messages);
  std::vector<Ticket> tickets;
  for (std::size_t number = 0; sends && number < messages; ++number) {
    sent[number].resize(mixed_size(number));
    write(sent[number], own, to, number);
    tickets.push_back(2 * number);
    transport.send(to, static_cast<int>(number % kTags), sent[number], tickets.back());
  }
  std::vector<std::size_t> order;
  for (std::size_t tag = 0; tag < kTags; ++tag) {
    for (std::size_t number = tag * 3 % kTags; receives && number < messages; number += kTags) {
      order.push_back(number);
    }
  }
  for (const std::size_t number : order) {
    received[number].resize(mixed_size(number));
    tickets.push_back(2 * number + 1);
    transport.receive(from, static_cast<int>(number % kTags), received[number], tickets.back());
  }
  wait_for(transport, tickets);
  for (const std::size_t number : order) {
    ASSERT_TRUE(holds(received[number], from, own, number)) << "message " << number;
  }
}

TEST_P(EveryTransport, KeepsMessagesOfATagInOrderAndTagsApart) {
  testing::run_over(GetParam(), 4, [](Transport& transport) { flood(transport, 100, true, true); });
}

TEST_P(EveryTransport, HoldsMoreMessagesThanAnInboxHasRoomFor) {
  constexpr std::size_t kMany = 1000;
  for (const int ranks : {2, 3}) {
    testing::run_over(GetParam(), ranks, [](Transport& transport) { flood(transport, kMany, true, true); });
  }
  testing::run_over(GetParam(), 2, [](Transport& transport) {
    // The receiver looks away while they come.
    if (transport.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    flood(transport, kMany, transport.rank() == 0, transport.rank() == 1);
  });
}

/// All ranks send so many messages to the next before any of them receives one.
void overfill(Transport& transport, std::size_t messages, std::size_t bytes) {
  const Rank own = transport.rank();
  const Rank from = (own + transport.size() - 1) % transport.size();
  Buffer sent(transport, Buffer::From::allocate, bytes);
  Buffer received(transport, Buffer::From::allocate, bytes);
  write(sent.span(), own, 0, 0);
  std::vector<Ticket> tickets;
  for (std::size_t number = 0; number < messages; ++number) {
    tickets.push_back(2 * number);
    transport.send((own + 1) % transport.size(), 0, sent.span(), tickets.back());
  }
  for (std::size_t number = 0; number < messages; ++number) {
    tickets.push_back(2 * number + 1);
    transport.receive(from, 0, received.span(), tickets.back());
  }
  wait_for(transport, tickets);
  EXPECT_TRUE(holds(received.span(), from, 0, 0)) << bytes << " bytes";
}

TEST_P(EveryTransport, HoldsMoreMessagesThanAnybodyHasTaken) {
  constexpr std::size_t kMany = 5000;
  // What is copied, and what is not.
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{5000}}) {
    testing::run_over(GetParam(), 3, [&](Transport& transport) { overfill(transport, kMany, bytes); });
  }
}

TEST_P(EveryTransport, CopiesAndCombinesInTheOrderOfTheStarts) {
  testing::run_over(GetParam(), 2, [](Transport& transport) {
    const std::vector<float> ones(1000, 1);
    std::vector<float> result(1000);
    auto* const to = reinterpret_cast<std::byte*>(result.data());
    transport.copy(to, std::as_bytes(std::span(ones)), 5);
    const std::byte* const operands[] = {to, to, to};
    transport.combine({ElementKind::float32, ReduceOp::sum, 1}, to, operands, 1000, 6);
    transport.combine({ElementKind::float32, ReduceOp::avg, 6}, to, std::span(operands).first(2), 1000, 7);
    wait_for(transport, {5, 6, 7});
    EXPECT_THAT(result, ::testing::Each(1.0F));
  });
}

TEST_P(EveryTransport, MeetsAnybodyOrNobodyButItself) {
  testing::run_over(GetParam(), 4, [&](Transport& transport) {
    std::vector<std::byte> own;
    for (Rank peer = 0; peer < transport.size(); ++peer) own.push_back(std::byte{transport.reaches(peer)});
    const auto all = testing::gather(transport, own);
    const auto reaches = [&](std::size_t a, std::size_t b) { return all[a][b] == std::byte{1}; };
    for (std::size_t a = 0; a < all.size(); ++a) {
      EXPECT_FALSE(reaches(a, a));
      for (std::size_t b = 0; b < all.size(); ++b) {
        EXPECT_EQ(reaches(a, b), reaches(b, a));
        for (std::size_t c = 0; c < all.size(); ++c) {
          EXPECT_TRUE(reaches(a, c) || a == c || !reaches(a, b) || !reaches(b, c));
        }
      }
    }
  });
}

/// Of whom a rank is told when it waits in vain.
std::vector<Rank> complaint(Transport& transport) {
  std::vector<Ticket> done;
  try {
    transport.wait(done);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::timeout);
    return testing::waited_for(error.what(), transport.rank());
  }
  ADD_FAILURE() << "rank " << transport.rank() << " did not have to wait";
  return {};
}

TEST_P(EveryTransport, NamesTheRankThatNeverComes) {
  for (const Rank absent : {0, 3}) {
    testing::run_over(
        GetParam(), 4,
        [&](Transport& transport) {
          if (transport.rank() == absent) return;
          std::vector<std::byte> data(100);
          transport.receive(absent, 0, data, 1);
          EXPECT_THAT(transport.awaited(), ::testing::ElementsAre(absent));
          EXPECT_THAT(complaint(transport), ::testing::ElementsAre(absent));
        },
        Seconds{0.05});
  }
}

TEST_P(EveryTransport, HasNothingInFlightOnceItHasFailed) {
  testing::run_over(GetParam(), 3, [](Transport& transport) {
    const Rank own = transport.rank();
    auto data = std::make_unique<std::vector<std::byte>>(100);
    const auto fail = [&] {
      for (Rank peer = 0; peer < transport.size(); ++peer) {
        if (peer != own) transport.receive(peer, 5, *data, 1);
      }
      EXPECT_THAT(transport.awaited(), ::testing::SizeIs(transport.size() - 1));
      throw Error(ExitCode::internal, "out of luck");
    };
    EXPECT_THROW(transport.attempt(fail), Error);
    EXPECT_THAT(transport.awaited(), ::testing::IsEmpty());
    data.reset();
    std::vector<Ticket> done;
    for (int i = 0; i < 10; ++i) transport.poll(done);
    EXPECT_THAT(done, ::testing::IsEmpty());
  });
}

/// Waits without a time limit, but not for ever.
void poll_for(Transport& transport, std::size_t operations) {
  std::vector<Ticket> done;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (done.size() < operations && std::chrono::steady_clock::now() < limit) {
    if (!transport.poll(done)) std::this_thread::yield();
  }
  EXPECT_EQ(done.size(), operations);
}

TEST_P(EveryTransport, NamesTheRankThatDoesNotTakeAMessageUntilItDoes) {
  testing::run_over(
      GetParam(), 4,
      [&](Transport& transport) {
        constexpr Rank kLate = 2;
        const Rank own = transport.rank();
        std::map<Rank, Buffer> buffers;  // beyond what is copied
        for (Rank peer = 0; peer < transport.size(); ++peer) {
          if (peer != kLate && (own == kLate || own == peer)) {
            buffers.emplace(peer, Buffer(transport, Buffer::From::allocate, 1 << 20));
          }
        }
        if (own != kLate) {
          write(buffers.at(own).span(), own, kLate, 0);
          transport.send(kLate, 0, buffers.at(own).span(), 1);
          EXPECT_THAT(complaint(transport), ::testing::ElementsAre(kLate));
          EXPECT_THAT(transport.awaited(), ::testing::ElementsAre(kLate));
          transport.send(kLate, 1, {}, 2);
          return poll_for(transport, 2);
        }
        for (const auto& [peer, buffer] : buffers) transport.receive(peer, 1, {}, 1);
        poll_for(transport, buffers.size());
        for (auto& [peer, buffer] : buffers) transport.receive(peer, 0, buffer.span(), 2);
        poll_for(transport, buffers.size());
        for (auto& [peer, buffer] : buffers) EXPECT_TRUE(holds(buffer.span(), peer, own, 0)) << peer;
      },
      Seconds{0.05});
}

TEST(SharedTransport, NamesOnlyThePartnersOfAMeetingThatHaveNotFinished) {
  testing::run_over(
      {Fabric::Kind::shared}, 3,
      [](Transport& transport) {
        const Rank own = transport.rank();
        Buffer buffer(transport, Buffer::From::allocate, 1 << 20);
        if (own == 2) return;  // never reads what it is given
        Exchange exchange;
        if (own == 0) {
          for (const Rank peer : {1, 2}) exchange.partners.push_back({peer, buffer.span(), {}, false, false});
        } else {
          exchange.partners.push_back({0, {}, {}, true, false});
          exchange.own = buffer.span();
          exchange.result = buffer.span().data();
        }
        transport.exchange(exchange, 1);
        if (own == 1) return wait_for(transport, {1});
        EXPECT_THAT(complaint(transport), ::testing::ElementsAre(2));
        EXPECT_THAT(transport.awaited(), ::testing::ElementsAre(2));
      },
      Seconds{0.3});
}

TEST(SharedTransport, NamesAPartnerThatKeepsItsPiecesBack) {
  testing::run_over(
      {Fabric::Kind::shared}, 3,
      [](Transport& transport) {
        const Rank own = transport.rank();
        Buffer buffer(transport, Buffer::From::vector, 1 << 20);
        Exchange exchange;
        if (own < 2) {
          exchange.partners.push_back({2, buffer.span(), {}, false, false});
        } else {
          for (const Rank peer : {0, 1}) exchange.partners.push_back({peer, {}, {}, true, false});
          exchange.own = buffer.span();
          exchange.result = buffer.span().data();
        }
        transport.exchange(exchange, 1);
        if (own == 1) return;  // offers, but fills nothing
        EXPECT_THAT(complaint(transport), ::testing::ElementsAre(own == 2 ? 1 : 2));
        EXPECT_THAT(transport.awaited(), ::testing::ElementsAre(own == 2 ? 1 : 2));
      },
      Seconds{0.3});
}

}  // namespace
}  // namespace polyring
