// The ring of offers between two ranks: it grows with what is unread, and no further.
#include "collectives/runtime/shared/outbox.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <new>

namespace polyring {
namespace {

constexpr std::size_t kRanks = 100;
constexpr std::size_t kWriter = 70;

class OutboxTest : public ::testing::Test {
 protected:
  OutboxTest() {
    new (segment_.address()) ControlBlock;
    for (std::size_t word = 0; word < ControlBlock::words(kRanks); ++word)
      new (&control().writers(word)) ControlBlock::Word{0};
  }

  ControlBlock& control() { return *reinterpret_cast<ControlBlock*>(segment_.address()); }
  Inbox& inbox() { return *reinterpret_cast<Inbox*>(control().inbox(kWriter, kRanks)); }

  bool write() {
    Offer offer;
    offer.tag = static_cast<int>(written_);
    if (!outbox_.write(offer, {})) return false;
    ++written_;
    return true;
  }

  /// As a transport does. The offers come in order, and none before it was written.
  bool read() {
    Entry& entry = inbox().entries[at_];
    if (entry.sequence.load(std::memory_order_acquire) != read_ + 1) return false;
    EXPECT_EQ(entry.offer.tag, static_cast<int>(read_));
    at_ = entry.next;
    inbox().read.store(++read_, std::memory_order_release);
    return true;
  }

  std::size_t inbox_pages() const {
    struct stat file {};
    EXPECT_EQ(fstat(segment_.name().descriptor, &file), 0);
    const auto bytes = static_cast<std::size_t>(file.st_blocks) * 512;
    return (bytes - ControlBlock::inboxes_at(kRanks)) / kPage;
  }

  Segment segment_{ControlBlock::bytes(kRanks), ControlBlock::inboxes_at(kRanks)};
  Mapping mapping_{segment_.name()};
  Outbox outbox_{mapping_, kWriter, kRanks};
  std::uint32_t written_ = 0;
  std::uint32_t at_ = 0;
  std::uint32_t read_ = 0;
};

TEST_F(OutboxTest, ARankThatWritesNothingCostsNothing) {
  EXPECT_EQ(inbox_pages(), 0U);
  EXPECT_EQ(control().writers(0).load(), 0U);
  EXPECT_EQ(control().writers(1).load(), 0U);
}

TEST_F(OutboxTest, OffersThatAreSoonReadNeedOnePage) {
  for (int i = 0; i < 10000; ++i) {
    for (int j = 0; j <= i % 20; ++j) ASSERT_TRUE(write());
    for (int j = 0; j <= i % 20; ++j) ASSERT_TRUE(read());
    ASSERT_FALSE(read());
  }
  EXPECT_EQ(inbox_pages(), 1U);
  EXPECT_EQ(control().writers(0).load(), 0U);
  EXPECT_EQ(control().writers(1).load(), std::uint64_t{1} << (kWriter - 64));
}

TEST_F(OutboxTest, GrowsWithWhatIsUnreadUntilItIsFull) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(write() && read());
  std::uint32_t unread = 0;
  for (; write(); ++unread) {
    EXPECT_LE(inbox_pages(), unread * sizeof(Entry) / kPage + 2);
  }
  EXPECT_EQ(unread, Inbox::kEntries - 1);
  EXPECT_EQ(inbox_pages(), sizeof(Inbox) / kPage);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(read());
    ASSERT_TRUE(write());
    ASSERT_FALSE(write());
  }
  while (read()) --unread;
  EXPECT_EQ(unread, 0U);
  EXPECT_EQ(read_, written_);
}

}  // namespace
}  // namespace polyring
