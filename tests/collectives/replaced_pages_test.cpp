// Pages of a program's own, in whose place a segment's are mapped.
#include "collectives/runtime/shared/replaced_pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "base/error.hpp"
#include "collectives/runtime/shared/mapped.hpp"
#include "tests/collectives/all_mappings.hpp"
#include "tests/sanitized.hpp"

namespace polyring {
namespace {

constexpr std::size_t kPages = 5;
constexpr std::byte kOld{0x5a};
constexpr std::byte kNew{0xa5};

/// Private pages; all but the first and the last are to be replaced.
class Region {
 public:
  Region() {
    std::ranges::fill(all(), kOld);
    for (std::size_t page = 0; page < kPages; ++page) begin_[page * kPage] = static_cast<std::byte>(page);
  }
  ~Region() { munmap(begin_, kPages * kPage); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::span<std::byte> all() const { return {begin_, kPages * kPage}; }
  std::span<std::byte> inner() const { return all().subspan(kPage, (kPages - 2) * kPage); }
  bool is_as_it_was() const {
    for (std::size_t i = 0; i < all().size(); ++i) {
      if (begin_[i] != (i % kPage == 0 ? static_cast<std::byte>(i / kPage) : kOld)) return false;
    }
    return true;
  }

 private:
  std::byte* begin_ = static_cast<std::byte*>(
      mmap(nullptr, kPages* kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
};

bool is_private(std::span<const std::byte> memory) {
  return std::ranges::all_of(mapped_ranges(memory),
                             [](const MappedRange& range) { return range.inode == 0; });
}

std::size_t blocks_of(const Segment& segment) {
  struct stat file {};
  EXPECT_EQ(fstat(segment.name().descriptor, &file), 0);
  return static_cast<std::size_t>(file.st_blocks);
}

TEST(ReplacedPages, AreTheSegmentsUntilTheyAreGivenBack) {
  const Region region;
  const std::span<std::byte> memory = region.inner();
  const Segment segment(memory.size());
  ReplacedPages pages(memory, segment);
  EXPECT_TRUE(region.is_as_it_was());
  EXPECT_FALSE(is_private(memory));
  EXPECT_TRUE(is_private(region.all().first(kPage)) && is_private(region.all().last(kPage)));
  segment.address()[17] = kNew;
  memory.back() = kNew;
  EXPECT_EQ(memory[17], kNew);
  EXPECT_EQ(segment.address()[memory.size() - 1], kNew);
  EXPECT_TRUE(pages.give_back());
  EXPECT_TRUE(is_private(region.all()));
  EXPECT_EQ(memory[17], kNew);
  EXPECT_EQ(memory.back(), kNew);
  EXPECT_EQ(blocks_of(segment), 0u) << "the memory is still held";
  segment.address()[18] = kNew;
  EXPECT_EQ(memory[18], kOld) << "others still write to the program's memory";
  memory[17] = memory.back() = kOld;
  EXPECT_TRUE(pages.give_back()) << "a second time, for nothing";
  EXPECT_TRUE(region.is_as_it_was());
}

TEST(ReplacedPages, AreGivenBackAtTheirEnd) {
  const Region region;
  {
    const Segment segment(region.inner().size());
    const ReplacedPages pages(region.inner(), segment);
    EXPECT_FALSE(is_private(region.all()));
  }
  EXPECT_TRUE(is_private(region.all()));
  EXPECT_TRUE(region.is_as_it_was());
}

/// What a program has there by then is its own.
TEST(ReplacedPages, LeaveAloneWhatTheProgramHasMappedSince) {
  const Region region;
  const Segment segment(region.inner().size());
  ReplacedPages pages(region.inner(), segment);
  std::byte* const middle = region.inner().data() + kPage;
  ASSERT_EQ(mmap(middle, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            middle);
  *middle = kNew;
  EXPECT_FALSE(pages.give_back());
  EXPECT_EQ(*middle, kNew);
}

template <typename Action>
bool is_not_to_be_had(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.code() == ExitCode::not_available;
  }
  return false;
}

/// Where another process has taken the memory meanwhile.
TEST(ReplacedPages, StayWhereTheHostHasNoRoomForPrivateOnes) {
  const Region region;
  const Segment segment(region.inner().size());
  ReplacedPages pages(region.inner(), segment);
  const auto none = [](std::size_t bytes) {
    return std::optional(LittleRoom{"the host", {static_cast<std::uint64_t>(bytes - kPage)}});
  };
  try {
    pages.give_back(false, none);
    ADD_FAILURE() << "given back";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::not_available);
    EXPECT_STREQ(
        error.what(),
        "12288 bytes of a buffer cannot be given back: the host has 8KiB left; free other memory, and "
        "deregister the buffer again");
  }
  EXPECT_TRUE(region.is_as_it_was());
  EXPECT_FALSE(is_private(region.inner()));
  EXPECT_TRUE(pages.give_back());
  EXPECT_TRUE(is_private(region.all()));
  EXPECT_TRUE(region.is_as_it_was());
}

/// Returns the first step that did not go as it should; 0 where all did.
int fail_halfway(std::size_t most) {
  const Region region;
  const Segment segment(region.inner().size());
  const Segment other(region.inner().size());
  std::optional<testing::AllMappings> all;
  all.emplace(most);
  if (!is_not_to_be_had([&] { const ReplacedPages pages(region.inner(), segment); })) return 1;
  if (!region.is_as_it_was() || !is_private(region.all())) return 2;
  all.reset();
  ReplacedPages pages(region.inner(), other);
  all.emplace(most);
  if (!is_not_to_be_had([&] { pages.give_back(); })) return 3;
  if (!region.is_as_it_was()) return 4;
  other.address()[1] = kNew;
  if (region.inner()[1] != kNew) return 5;  // still replaced
  other.address()[1] = kOld;
  all.reset();
  if (!pages.give_back() || !is_private(region.all())) return 6;
  return region.is_as_it_was() ? 0 : 7;
}

TEST(ReplacedPages, KeepTheirContentsWhereTheSystemMapsNoMore) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs mappings of its own";
  const std::size_t most = testing::most_mappings();
  if (most == 0) GTEST_SKIP() << "there may be any number of mappings here";
  EXPECT_EXIT(
      _exit(fail_halfway(most)), ::testing::ExitedWithCode(0),
      "12288 bytes of a buffer cannot be registered: Cannot allocate memory; use smaller or fewer buffers");
}

}  // namespace
}  // namespace polyring
