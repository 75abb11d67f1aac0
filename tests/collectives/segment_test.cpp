// Shared memory where the system is in the way.
#include "collectives/runtime/shared/segment.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/error.hpp"
#include "base/memory_room.hpp"
#include "tests/sanitized.hpp"

namespace {

std::size_t longest_uninterrupted = 0;  // bytes; 0: any number
int calls = 0;
bool gives_none = false;

}  // namespace

// In place of the library's own. Of older Linux a signal ended it, with nothing done, however often it was
// called again: under a timer, whoever asked for more than could be had in between got nothing.
extern "C" int posix_fallocate(int descriptor, off_t begin, off_t bytes) {
  constexpr int kMostCalls = 10000;
  if (++calls > kMostCalls || gives_none) return ENOSPC;
  if (longest_uninterrupted > 0 && static_cast<std::size_t>(bytes) > longest_uninterrupted) return EINTR;
  return fallocate(descriptor, 0, begin, bytes) == 0 ? 0 : errno;
}

namespace polyring {
namespace {

std::size_t memory_of(const Segment& segment) {
  constexpr std::size_t kUnit = 512;  // of st_blocks
  struct stat file {};
  EXPECT_EQ(fstat(segment.name().descriptor, &file), 0);
  return static_cast<std::size_t>(file.st_blocks) * kUnit;
}

TEST(Segment, GetsTheMemoryThatItIsTold) {
  const Segment segment(100 * kPage, 3 * kPage);
  EXPECT_EQ(segment.bytes(), 100 * kPage);
  EXPECT_EQ(memory_of(segment), 3 * kPage);
  const Mapping mapping(segment.name());
  mapping.fill(10 * kPage, 2 * kPage);
  EXPECT_EQ(memory_of(segment), 5 * kPage);
  mapping.address()[11 * kPage] = std::byte{1};
  mapping.fill(11 * kPage, kPage);
  EXPECT_EQ(memory_of(segment), 5 * kPage);
  EXPECT_EQ(segment.address()[11 * kPage], std::byte{1}) << "what was written is lost";
}

/// Linux would give it, and end other processes when there is none left.
TEST(Segment, IsNotLargerThanWhatTheHostHasLeft) {
  const auto said = [](std::size_t bytes) -> std::string {
    try {
      const Segment segment(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::not_available);
      return error.what();
    }
    return "nothing";
  };
  const Bytes left = memory_room().host.value_or(Bytes{});
  ASSERT_GT(left.value, 0u);
  gives_none = true;  // so that nobody's memory is taken
  for (const std::size_t bytes : {left.value + (std::size_t{1} << 30), std::size_t{1} << 50, ~std::size_t{0}})
    EXPECT_THAT(said(bytes),
                ::testing::ContainsRegex(" has [0-9.]+ ?[A-Za-z]+ left: use less, or run fewer"));
  gives_none = false;
}

TEST(Segment, OfAProcessThatGaveUpIsMissed) {
  SegmentName name = Segment(kPage).name();  // it is gone
  name.token ^= 1;                           // as another process's
  std::string said;
  try {
    const Mapping mapping(name);
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_EQ(said,
            "4096 bytes of shared memory are not to be had: open: No such file or directory; the process "
            "that made it has ended, "
            "or is out of sight, as from one container to another");
}

TEST(Segment, GetsItsMemoryUnderAProfilersTimer) {
  for (const std::size_t most : {kPage, 7 * kPage, std::size_t{1} << 20}) {
    longest_uninterrupted = most;
    calls = 0;
    const Segment segment(5 << 20);
    longest_uninterrupted = 0;
    EXPECT_EQ(memory_of(segment), std::size_t{5} << 20) << most;
  }
}

/// Makes one where no mapping is left, and says what happens.
void make_one_too_many(std::size_t most_mappings) {
  // Neighbours that differ in what may be done with them are mappings of their own.
  const std::size_t bytes = 2 * most_mappings * kPage;
  void* reserved = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  auto* pages = static_cast<std::byte*>(reserved);
  std::size_t page = 0;
  while (mprotect(pages + page * kPage, kPage, PROT_READ) == 0) page += 2;
  while (mmap(nullptr, kPage, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
  }
  ExitCode code = ExitCode::ok;
  std::string said;
  try {
    const Segment segment(kPage);
  } catch (const Error& error) {
    code = error.code();
    said = error.what();
  }
  munmap(reserved, bytes);
  fprintf(stderr, "%s\n", said.c_str());
  _exit(static_cast<int>(code));
}

TEST(Segment, SaysWhatHelpsWhereThereAreTooManyMappings) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs mappings of its own";
  std::ifstream file("/proc/sys/vm/max_map_count");
  std::size_t most = 0;
  constexpr std::size_t kMost = 1 << 20;
  if (!(file >> most) || most > kMost) GTEST_SKIP() << "there may be " << most << " mappings here";
  EXPECT_EXIT(
      make_one_too_many(most), ::testing::ExitedWithCode(static_cast<int>(ExitCode::not_available)),
      "4096 bytes of shared memory are not to be had: mmap: Cannot allocate memory; this process has as "
      "many mappings of memory as the system allows, " +
          std::to_string(most) + ": raise vm.max_map_count");
}

}  // namespace
}  // namespace polyring
