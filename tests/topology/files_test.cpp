#include "topology/inventory/probe/files.hpp"

#include <sys/stat.h>

#include "tests/topology/support.hpp"

namespace polyring::probe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SysfsFiles, HoldNumbers) {
  EXPECT_EQ(whole_number("0x10de\n"), 0x10de);
  EXPECT_EQ(whole_number("-1"), -1);
  EXPECT_EQ(whole_number("12 kB"), 12);
  EXPECT_EQ(whole_number(""), std::nullopt);
  EXPECT_EQ(whole_number("x"), std::nullopt);
  EXPECT_EQ(whole_number("99999999999999999999"), std::nullopt);
}

TEST(SysfsFiles, AreSmallAndRegular) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(read_small_file(folder.write("speed", "100000\n")), "100000\n");
  EXPECT_EQ(read_small_file(folder.path() / "missing"), "");
  EXPECT_EQ(read_small_file(folder.path()), "");
  EXPECT_EQ(read_small_file("/dev/zero"), "");
  const std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_small_file(pipe), "");
  const std::filesystem::path huge = folder.write("huge", "");
  std::filesystem::resize_file(huge, std::uintmax_t{1} << 40);  // sparse
  EXPECT_EQ(read_small_file(huge).size(), 64u << 10);
}

TEST(SysfsFiles, HoldLists) {
  EXPECT_THAT(number_list("0-3,8,10-11"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(number_list("7"), ElementsAre(7));
  for (const char* text : {"", "x", "3-1", "1-", "-1", "1;2", "0-4294967295", "0-99999999"})
    EXPECT_THAT(number_list(text), IsEmpty()) << text;
}

TEST(SysfsFiles, HoldGuids) {
  EXPECT_EQ(guid_text("506b:4b03:00c0:ffee\n"), "0x506b4b0300c0ffee");
  EXPECT_EQ(guid_text("fe80:0000:0000:0000:506b:4b03:00c0:ffee"), "0x506b4b0300c0ffee");
  EXPECT_EQ(guid_text("fe80:0000:0000:0000:0000:0000:0000:0000"), "");
  EXPECT_EQ(guid_text("0a7f:bc12:45ef:d23bEOF"), "");
  EXPECT_EQ(guid_text("506b:4b03"), "");
  EXPECT_EQ(guid_text(""), "");
}

}  // namespace
}  // namespace polyring::probe
