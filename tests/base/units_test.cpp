#include "base/units.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/topology/support.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::usage_sentence;

TEST(Units, BytesAreBinaryLikeNcclTestsUnlessTheyEndInB) {
  EXPECT_EQ(parse_bytes("8", "size").value, 8u);
  EXPECT_EQ(parse_bytes("0", "size").value, 0u);
  EXPECT_EQ(parse_bytes("1K", "size").value, 1024u);
  EXPECT_EQ(parse_bytes("64M", "size").value, 64u << 20);
  EXPECT_EQ(parse_bytes("64MiB", "size").value, 64u << 20);
  EXPECT_EQ(parse_bytes("2G", "size").value, std::uint64_t{2} << 30);
  EXPECT_EQ(parse_bytes("100MB", "size").value, 100'000'000u);
  EXPECT_EQ(parse_bytes("1kB", "size").value, 1000u);
  EXPECT_EQ(parse_bytes("1.5K", "size").value, 1536u);
}

class BadBytes : public ::testing::TestWithParam<const char*> {};

TEST_P(BadBytes, AreRefusedByName) {
  EXPECT_THAT(usage_sentence([] { parse_bytes(GetParam(), "minbytes"); }),
              AllOf(HasSubstr("minbytes"), HasSubstr(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Units, BadBytes,
                         ::testing::Values("", "-1", "-8K", "+8", "K", "8Q", "8 8", "0.3", "1e400", "nan",
                                           "inf", "1e3x", "9223372036854775808", "99999999999T", "64M ",
                                           "0x10"));

TEST(Units, BandwidthDistinguishesBitsFromBytes) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("25GB/s", "x").value, 25e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("200Gb/s", "x").value, 25e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("200Mbit", "x").value, 25e6);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1.5 GB/s", "x").value, 1.5e9);
  for (const char* bad : {"0GB/s", "-1GB/s", "25", "25GB", "GB/s", "nanGB/s", "", "0.9B/s", "1000001TB/s"}) {
    EXPECT_THAT(usage_sentence([&] { parse_bandwidth(bad, "uplink"); }), HasSubstr("uplink")) << bad;
  }
}

TEST(Units, SecondsAreBareOrWithAUnit) {
  EXPECT_DOUBLE_EQ(parse_seconds("5us", "x").value, 5e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5ms", "x").value, 1.5e-3);
  EXPECT_DOUBLE_EQ(parse_seconds("90ns", "x").value, 90e-9);
  EXPECT_DOUBLE_EQ(parse_seconds("20min", "x").value, 1200);
  EXPECT_DOUBLE_EQ(parse_seconds("12h", "x").value, 43200);
  EXPECT_DOUBLE_EQ(parse_seconds("2", "x").value, 2);
  EXPECT_DOUBLE_EQ(parse_seconds("0", "x").value, 0);
  for (const char* bad : {"-1s", "5 parsecs", "", "us", "1000000001s"}) {
    EXPECT_THAT(usage_sentence([&] { parse_seconds(bad, "timeout"); }), HasSubstr("timeout")) << bad;
  }
}

TEST(Units, PrintsBytesInTheLargestExactUnit) {
  EXPECT_EQ(to_text(Bytes{0}), "0B");
  EXPECT_EQ(to_text(Bytes{1000}), "1kB");
  EXPECT_EQ(to_text(Bytes{100000000}), "100MB");
  EXPECT_EQ(to_text(Bytes{1024}), "1KiB");
  EXPECT_EQ(to_text(Bytes{1025}), "1025B");
  EXPECT_EQ(to_text(Bytes{64u << 20}), "64MiB");
}

TEST(Units, PrintedBytesReadBack) {
  for (const std::uint64_t value :
       {0ull, 1ull, 1000ull, 1024ull, 1536ull, 1ull << 20, 3ull << 30, 1ull << 42}) {
    EXPECT_EQ(parse_bytes(to_text(Bytes{value}), "x").value, value);
  }
}

TEST(Units, PrintsThreeSignificantDigits) {
  EXPECT_EQ(to_text(gigabytes_per_second(12.1)), "12.1 GB/s");
  EXPECT_EQ(to_text(gigabytes_per_second(0.125)), "125 MB/s");
  EXPECT_EQ(to_text(gigabytes_per_second(999.9)), "1.00 TB/s");
  EXPECT_EQ(to_text(Bandwidth{}), "?");
  EXPECT_EQ(to_text(Seconds{0.2134}), "213 ms");
  EXPECT_EQ(to_text(microseconds(5)), "5.00 us");
  EXPECT_EQ(to_text(Seconds{}), "0 s");
}

TEST(Units, BytesOverBandwidthAreSeconds) {
  EXPECT_DOUBLE_EQ((Bytes{1'000'000} / gigabytes_per_second(2)).value, 0.5e-3);
  EXPECT_DOUBLE_EQ(gigabits_per_second(100).gigabytes_per_second(), 12.5);
}

TEST(Significant, HasNoExponentAndNoNeedlessZeros) {
  EXPECT_EQ(significant(1239.6), "1240");
  EXPECT_EQ(significant(97), "97");
  EXPECT_EQ(significant(97.04), "97");
  EXPECT_EQ(significant(12.06), "12.1");
  EXPECT_EQ(significant(0.0125), "0.0125");
  EXPECT_EQ(significant(0.0000123456), "0.0000123");
  EXPECT_EQ(significant(1234567), "1234567");
  EXPECT_EQ(significant(1.23456, 4), "1.235");
  EXPECT_EQ(significant(0), "0");
  EXPECT_EQ(significant(-2.5), "-2.5");
  EXPECT_EQ(significant(std::numeric_limits<double>::infinity()), "?");
}

TEST(Units, WhatIsNotFiniteIsUnknown) {
  EXPECT_EQ(to_text(Bandwidth{std::numeric_limits<double>::infinity()}), "?");
  EXPECT_EQ(to_text(Seconds{std::numeric_limits<double>::quiet_NaN()}), "?");
}

}  // namespace
}  // namespace polyring
