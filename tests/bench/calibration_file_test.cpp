#include "bench/record/calibration_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/damaged_files.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;

CalibrationRecord record() {
  CalibrationRecord record;
  record.created = "2026-03-01T12:00:00Z";
  record.command = "polyring calibrate a.json --check b.json";
  record.source = Source::emulated;
  record.fitted_to = {"a.json: 4 ranks on 2 hosts"};
  record.checked_on = {"b.json: 9 ranks on 3 hosts"};
  Calibration& calibration = record.calibration;
  calibration.links = {{LinkClass::memory, microseconds(4), gigabytes_per_second(3), 1, 0.05, {}},
                       {LinkClass::network, microseconds(90), {}, 0.94, {}, 0.01}};
  calibration.fitted = {24, 0.02, 0.05, 0.04};
  calibration.checked = {30, 0.03, 0.12, 0.08};
  calibration.range = {16, 4, {65536}, {16 << 20}};
  return record;
}

std::string refused(const std::string& text) { return refusal_of(parse_calibration, text); }

/// The text of the record with something else in it.
std::string damaged(const std::string& from, const std::string& to) {
  return changed(calibration_text(record()), from, to);
}

TEST(CalibrationFile, IsReadAsItWasWritten) {
  const std::string text = calibration_text(record());
  EXPECT_EQ(calibration_text(parse_calibration(text, "a file")), text);
  CalibrationRecord unchecked = record();
  unchecked.calibration.checked.reset();
  const CalibrationRecord read = parse_calibration(calibration_text(unchecked), "a file");
  EXPECT_FALSE(read.calibration.checked);
  EXPECT_EQ(read.calibration.find(LinkClass::network)->bandwidth_error, 0.01);
  EXPECT_FALSE(read.calibration.find(LinkClass::memory)->bandwidth_error);
}

TEST(CalibrationFile, ThatIsNoneOrDamagedIsRefused) {
  for (const char* text : {"", "[]", "{}", "{\"format\": \"polyring-result\"}", "\xff\xfe"})
    EXPECT_THAT(refused(text), HasSubstr("is no calibration, or damaged"));
  EXPECT_THAT(refused(damaged("\"version\": 2", "\"version\": 3")), HasSubstr("of version 3"));
  EXPECT_THAT(refused(damaged("\"version\": 2", "\"version\": 1e26")), HasSubstr("of version 1e+26"));
  EXPECT_THAT(refused(damaged("\"device\": \"cpu\"", "\"device\": \"abacus\"")),
              HasSubstr("there is no device 'abacus'"));
  EXPECT_THAT(refused(damaged("\"network\"", "\"pigeons\"")), HasSubstr("no links of kind 'pigeons'"));
  EXPECT_THAT(refused(damaged("\"share\": 0.94", "\"share\": -0.94")), HasSubstr("share is -0.94"));
  EXPECT_THAT(refused(damaged("\"latency_us\": 90", "\"latency_us\": \"90\"")), HasSubstr("damaged"));
  EXPECT_THAT(refused(damaged("\"share\": 0.94", "\"share\": 1e400")), HasSubstr("damaged"));
  EXPECT_THAT(refused(damaged("\"most_ranks\": 16", "\"most_ranks\": 0")), HasSubstr("most_ranks is 0"));
  for (const char* value : {"1e300", "-1e300", "1.5"})
    EXPECT_THAT(refused(damaged("\"most_ranks\": 16", std::string("\"most_ranks\": ") + value)),
                HasSubstr("most_ranks is"));
  EXPECT_THAT(refused(damaged("\"least_bytes\": 65536", "\"least_bytes\": -1")),
              HasSubstr("least_bytes is -1"));
  EXPECT_THAT(refused(damaged("\"emulated\"", "\"modelled\"")), HasSubstr("its source is 'modelled'"));
  EXPECT_THAT(refused(damaged("\"fitted\":", "\"fated\":")), HasSubstr("damaged"));
}

TEST(CalibrationFile, HoldsForDataInOnePlace) {
  CalibrationRecord of_gpus = record();
  of_gpus.device = DataDevice::cuda;
  const CalibrationRecord read = parse_calibration(calibration_text(of_gpus), "a file");
  EXPECT_EQ(read.device, DataDevice::cuda);
  EXPECT_THAT(note_of(read), HasSubstr("times of up to 16 GPUs"));
  check_device(read, DataDevice::cuda, "a file");
  EXPECT_THAT(refusal([&] { check_device(read, DataDevice::cpu, "a file"); }),
              HasSubstr("'a file' holds for data on GPUs, and these are in host memory"));
  EXPECT_THAT(refusal([&] { check_device(record(), DataDevice::cuda, "a file"); }),
              HasSubstr("'a file' holds for data in host memory, and these are on GPUs"));
  // Those of version 1 say nothing of it.
  const std::string first = changed(changed(calibration_text(record()), "  \"device\": \"cpu\",\n", ""),
                                    "\"version\": 2", "\"version\": 1");
  EXPECT_EQ(parse_calibration(first, "a file").device, DataDevice::cpu);
}

TEST(CalibrationFile, SaysWhatItsPredictionsAreWorth) {
  EXPECT_EQ(
      note_of(record()),
      "Calibrated on 24 emulated times of up to 16 ranks; at 30 others it is off by 3.0 % on average, at "
      "worst by 12.0 %.");
  CalibrationRecord unchecked = record();
  unchecked.calibration.checked.reset();
  EXPECT_THAT(note_of(unchecked), HasSubstr("not checked on any others"));
}

}  // namespace
}  // namespace polyring
