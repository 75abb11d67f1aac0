// Shared memory where the system is in the way.
#include "collectives/runtime/shared/segment.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "base/error.hpp"
#include "base/memory_room.hpp"
#include "tests/collectives/all_mappings.hpp"
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

/// Whose parent has made segments as well.
TEST(Segment, OfAForksChildIsFound) {
  const Segment own(kPage);
  int made[2];
  int read_to_end[2];
  ASSERT_EQ(pipe(made), 0);
  ASSERT_EQ(pipe(read_to_end), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(read_to_end[1]);
    const Segment segment(kPage);
    segment.address()[5] = std::byte{7};
    const SegmentName name = segment.name();
    [[maybe_unused]] const ssize_t told = write(made[1], &name, sizeof name);
    char byte = 0;
    _exit(read(read_to_end[0], &byte, 1) == 1 ? 0 : 1);
  }
  close(made[1]);
  SegmentName name;
  ASSERT_EQ(read(made[0], &name, sizeof name), static_cast<ssize_t>(sizeof name));
  EXPECT_NE(name.token, own.name().token);
  EXPECT_EQ(Mapping(name).address()[5], std::byte{7});
  ASSERT_EQ(write(read_to_end[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
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
  const testing::AllMappings all(most_mappings);
  ExitCode code = ExitCode::ok;
  std::string said;
  try {
    const Segment segment(kPage);
  } catch (const Error& error) {
    code = error.code();
    said = error.what();
  }
  fprintf(stderr, "%s\n", said.c_str());
  _exit(static_cast<int>(code));
}

TEST(Segment, SaysWhatHelpsWhereThereAreTooManyMappings) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs mappings of its own";
  const std::size_t most = testing::most_mappings();
  if (most == 0) GTEST_SKIP() << "there may be any number of mappings here";
  EXPECT_EXIT(
      make_one_too_many(most), ::testing::ExitedWithCode(static_cast<int>(ExitCode::not_available)),
      "4096 bytes of shared memory are not to be had: mmap: Cannot allocate memory; this process has as "
      "many mappings of memory as the system allows, " +
          std::to_string(most) + ": raise vm.max_map_count");
}

}  // namespace
}  // namespace polyring
