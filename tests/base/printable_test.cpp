#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace polyring {
namespace {

TEST(Printable, KeepsTextInAllLanguages) {
  for (const char* text : {"", "mlx5_0", "größe × 2 …", "日本", "😀", "a\nb\tc"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ShowsControlCharacters) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "␛[31mred␛[0m");
  EXPECT_EQ(printable("bell\a back\b\r delete\x7f"), "bell␇ back␈␍ delete␡");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "␀");
  EXPECT_EQ(printable("\u009b31m"), "�31m") << "what ESC [ is in one character";
  EXPECT_EQ(printable("\u202Etxt.exe"), "�txt.exe");
  EXPECT_EQ(printable("a\u2028b"), "a�b");
}

TEST(Printable, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "��");
  EXPECT_EQ(printable("a\xc3"), "a�") << "cut off";
  EXPECT_EQ(printable("\xc3(x"), "�(x");
  EXPECT_EQ(printable("\x9b"), "�") << "Latin-1's ESC [";
  EXPECT_EQ(printable("\xc0\x9b"), "��") << "a longer form of ESC";
  EXPECT_EQ(printable("\xed\xa0\x80"), "���") << "half of a character of UTF-16";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "����") << "beyond Unicode";
}

TEST(Printable, OnlyWhatIsNotUtf8MayBeReplaced) {
  EXPECT_EQ(valid_utf8("größe\x1b[31m\r\n\u200e"), "größe\x1b[31m\r\n\u200e");
  EXPECT_EQ(valid_utf8("NC\xbd\xb1 gr\xf6\xdf"
                       "er"),
            "NC�� gr��er");
}

TEST(Printable, ALineStaysOne) {
  EXPECT_EQ(printable_line("gpu0\npolyring: all is well\t!"), "gpu0␊polyring: all is well␉!");
}

TEST(Printable, IsCutWhereItIsTooLong) {
  EXPECT_EQ(printable_line("größe", 5), "größe");
  EXPECT_EQ(printable_line("größer", 5), "größe…");
  EXPECT_EQ(printable_line("", 0), "");
  EXPECT_EQ(printable_line("x", 0), "…");
}

}  // namespace
}  // namespace polyring
