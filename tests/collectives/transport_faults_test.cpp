// What holds when a rank fails, leaves at once, or is slow: of transports inside one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "collectives/runtime/transports/threads.hpp"
#include "tests/collectives/fabric.hpp"

namespace polyring {
namespace {

using testing::Fabric;

constexpr Fabric kShared{Fabric::Kind::shared};

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) sleep_ms(1);
}

void wait_for_all(Transport& transport, std::size_t operations) {
  std::vector<Ticket> done;
  while (done.size() < operations) transport.wait(done);
}

/// What is done by now, or a little later.
std::vector<Ticket> soon_done(Transport& transport) {
  std::vector<Ticket> done;
  for (int i = 0; i < 50; ++i) {
    transport.poll(done);
    sleep_ms(1);
  }
  return done;
}

TEST(ThreadTransport, TakesBackWhatItHasOfferedWhenItFails) {
  std::atomic<bool> failed{false};
  run_ranks(2, [&](ThreadTransport& transport) {
    if (transport.rank() == 0) {
      auto data = std::make_unique<std::vector<std::byte>>(1 << 20);
      const auto fail = [&] {
        transport.send(1, 0, *data, 1);
        throw Error(ExitCode::internal, "out of luck");
      };
      EXPECT_THROW(transport.attempt(fail), Error);
      data.reset();
      failed = true;
      return;
    }
    wait_for(failed);
    std::vector<std::byte> received(1 << 20);
    transport.receive(0, 0, received, 1);
    EXPECT_THAT(soon_done(transport), ::testing::IsEmpty());
  });
}

TEST(SharedTransport, WhatOthersStillReadStaysWhenItsOwnerFails) {
  std::atomic<bool> failed{false};
  testing::run_over(kShared, 2, [&](Transport& transport) {
    constexpr std::size_t kBytes = 1 << 20;
    if (transport.rank() == 0) {
      Memory data = transport.allocate({kBytes});
      std::memset(data.get(), 7, kBytes);
      const auto fail = [&] {
        transport.send(1, 0, {data.get(), kBytes}, 1);
        throw Error(ExitCode::internal, "out of luck");
      };
      EXPECT_THROW(transport.attempt(fail), Error);
      data.reset();
      failed = true;
      return;
    }
    wait_for(failed);
    std::vector<std::byte> received(kBytes);
    transport.receive(0, 0, received, 1);
    wait_for_all(transport, 1);
    EXPECT_THAT(received, ::testing::Each(std::byte{7}));
  });
}

TEST(SharedTransport, StaysUntilWhatItHasCopiedIsTaken) {
  constexpr std::size_t kBytes = 1000;  // too many to be in the offer, and few enough to be copied
  constexpr int kLate = 100;
  std::atomic<bool> sent{false};
  std::atomic<bool> gone{false};
  testing::run_over_own(kShared, 2, [&](std::unique_ptr<Transport> transport) {
    std::vector<std::byte> data(kBytes);
    if (transport->rank() == 0) {
      std::fill(data.begin(), data.end(), std::byte{7});
      transport->send(1, 0, data, 1);
      wait_for_all(*transport, 1);
      sent = true;
      transport.reset();
      gone = true;
      return;
    }
    wait_for(sent);
    sleep_ms(kLate);
    ASSERT_FALSE(gone) << "the sender does not wait for its receiver";
    transport->receive(0, 0, data, 1);
    wait_for_all(*transport, 1);
    EXPECT_THAT(data, ::testing::Each(std::byte{7}));
    wait_for(gone);
  });
}

/// Rank 0 gives rank `slow` what lies in shared memory, which is read there, and the other one what lies
/// elsewhere, which is copied for it.
void meet_a_slow_partner(Transport& transport, Rank slow, std::atomic<bool>& looked) {
  constexpr std::size_t kBytes = 64 << 10;
  const Memory shared = transport.allocate({kBytes});
  std::vector<std::byte> elsewhere(kBytes, std::byte{3});
  Exchange exchange;
  if (transport.rank() == 0) {
    std::memset(shared.get(), 7, kBytes);
    for (const Rank peer : {1, 2}) {
      const std::span<const std::byte> gives =
          peer == slow ? std::span<const std::byte>(shared.get(), kBytes) : std::span(elsewhere);
      exchange.partners.push_back({peer, gives, {}, false, false});
    }
    transport.exchange(exchange, 1);
    EXPECT_THAT(soon_done(transport), ::testing::IsEmpty()) << "rank " << slow << " has read nothing yet";
    std::memset(elsewhere.data(), 0, kBytes);
    looked = true;
    wait_for_all(transport, 1);
    return;
  }
  if (transport.rank() == slow) wait_for(looked);
  exchange.partners.push_back({0, {}, {}, true, false});
  std::vector<std::byte> result(kBytes);
  exchange.own = result;
  exchange.result = result.data();
  exchange.reduction = {ElementKind::int32, ReduceOp::sum, 1, ElementKind::int32};
  transport.exchange(exchange, 1);
  wait_for_all(transport, 1);
  EXPECT_THAT(result, ::testing::Each(transport.rank() == slow ? std::byte{7} : std::byte{3}));
}

TEST(SharedTransport, AMeetingIsOverWhenItsSlowPartnerIsDoneWhoeverElseIsGivenACopy) {
  for (const Rank slow : {1, 2}) {
    std::atomic<bool> looked{false};
    testing::run_over(kShared, 3,
                      [&](Transport& transport) { meet_a_slow_partner(transport, slow, looked); });
  }
}

/// Rank 1 does a part of its work at a time, and takes longer for all than rank 0 would wait for nothing.
void go_on_slowly(Transport& transport, bool reaches, std::span<std::byte> data) {
  constexpr int kPause = 100;
  Exchange exchange;
  exchange.own = data;
  exchange.reduction = {ElementKind::int32, ReduceOp::sum, 1, ElementKind::int32};
  if (transport.rank() == 0) {
    std::fill(data.begin(), data.end(), std::byte{7});
    exchange.partners.push_back({1, data, {}, false, false});
    if (reaches) {
      transport.exchange(exchange, 1);
    } else {
      transport.send(1, 0, data, 1);
    }
    EXPECT_NO_THROW(wait_for_all(transport, 1));
    return;
  }
  exchange.partners.push_back({0, {}, {}, true, false});
  exchange.result = data.data();
  if (reaches) {
    transport.exchange(exchange, 1);
  } else {
    transport.receive(0, 0, data, 1);
  }
  std::vector<Ticket> done;
  while (done.empty()) {
    sleep_ms(kPause);
    transport.poll(done);
  }
  EXPECT_THAT(data, ::testing::Each(std::byte{7}));
}

TEST(SharedTransport, WaitsForAPartnerThatIsSlowButGoesOn) {
  constexpr std::size_t kBytes = 24 * testing::kShortPiece;
  const Fabric in_pieces{Fabric::Kind::shared, testing::Placement::one_host, false, true};
  for (const bool in_segment : {false, true}) {
    testing::run_over(
        in_pieces, 2,
        [&](Transport& transport) {
          const Memory memory = in_segment ? transport.allocate({kBytes}) : transport.scratch({kBytes});
          std::memset(memory.get(), 0, kBytes);
          const bool reaches = !in_segment;
          go_on_slowly(transport, reaches, {memory.get(), kBytes});
        },
        Seconds{2});
  }
}

/// Of all memory that this process shares, in bytes.
std::size_t shared_memory() {
  std::size_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    struct stat file {};
    if (gone || target.string().find("memfd:polyring") == std::string::npos) continue;
    if (stat(entry.path().c_str(), &file) == 0) bytes += static_cast<std::size_t>(file.st_blocks) * 512;
  }
  return bytes;
}

/// What each of so many ranks adds, when each has sent to the next one.
std::size_t shared_memory_per_rank(int ranks) {
  std::atomic<std::size_t> most{0};
  std::atomic<int> arrived{0};
  const std::size_t before = shared_memory();
  testing::run_over(kShared, ranks, [&](Transport& transport) {
    const Rank own = transport.rank();
    for (int i = 0; i < 300; ++i) {
      std::byte sent{};
      std::byte received{};
      transport.send((own + 1) % ranks, 0, {&sent, 1}, 1);
      transport.receive((own + ranks - 1) % ranks, 0, {&received, 1}, 2);
      wait_for_all(transport, 2);
    }
    if (++arrived == ranks) most = shared_memory();
    while (most == 0) sleep_ms(1);
  });
  return (most - before) / static_cast<std::size_t>(ranks);
}

TEST(SharedTransport, TakesMemoryForThoseWhoTalkToEachOtherOnly) {
  const std::size_t of_two = shared_memory_per_rank(2);
  const std::size_t of_many = shared_memory_per_rank(64);
  EXPECT_LT(of_two, std::size_t{64} << 10);
  EXPECT_LT(of_many, 2 * of_two) << "of each rank, however many there are";
}

}  // namespace
}  // namespace polyring
