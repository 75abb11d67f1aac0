#include "reports/result.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/files.hpp"
#include "reports/result_text.hpp"
#include "tests/folder.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

using examples::TemporaryFolder;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

std::vector<ResultFile> all_examples() {
  return {examples::allreduce(),      examples::train(), examples::scale(),
          examples::published_runs(), examples::tune(),  examples::accept()};
}

/// The sentence of the usage Error that reading `content` throws; empty when it throws none.
std::string complaint(const std::string& content) {
  const TemporaryFolder folder;
  write_file(folder / "bad.json", content);
  try {
    read_result(folder / "bad.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("bad.json"));
    return error.what();
  }
  return "";
}

json document_of(const ResultFile& file) {
  const TemporaryFolder folder;
  return json::parse(read_file(write_result(folder / "example.json", file)));
}

std::size_t files_in(const TemporaryFolder& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++count;
  return count;
}

TEST(Result, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  for (const ResultFile& example : all_examples()) {
    EXPECT_EQ(read_result(write_result(folder / "example.json", example)), example);
  }
}

TEST(Result, WithoutRowsOrOptionalValuesIsReadAsItWasWritten) {
  const TemporaryFolder folder;
  ResultFile file = examples::allreduce(1);
  auto& rows = std::get<std::vector<CollectiveRow>>(file.rows);
  rows.resize(1);
  rows[0].bound_us.reset();
  rows[0].bound_fraction.reset();
  rows[0].wrong.reset();
  rows[0].size_bytes = 1ull << 60;
  EXPECT_EQ(read_result(write_result(folder / "a.json", file)), file);
  rows.clear();
  EXPECT_EQ(read_result(write_result(folder / "b.json", file)), file);
}

TEST(Result, KeepsWhatOnlySomeScalingRowsHave) {
  const TemporaryFolder folder;
  ResultFile file = examples::scale();
  ScaleRow& row = std::get<std::vector<ScaleRow>>(file.rows)[0];
  row.global_batch = 8192;
  row.strategy = "data=64,pipeline=4";
  row.bubble = 0.25;
  EXPECT_EQ(read_result(write_result(folder / "a.json", file)), file);
  const json rows = document_of(file)["rows"];
  EXPECT_EQ(rows[0]["global_batch"], 8192);
  EXPECT_FALSE(rows[1].contains("global_batch"));
}

TEST(Result, OfARowWithoutConditionsIsWrittenAsItAlwaysWas) {
  const json rows = document_of(examples::scale())["rows"];
  for (const char* key :
       {"iteration_low_ms", "iteration_high_ms", "efficiency_low", "efficiency_high", "feed_GBps", "limit"}) {
    EXPECT_FALSE(rows[0].contains(key)) << key;
    EXPECT_TRUE(rows[1].contains(key)) << key;
  }
}

TEST(Result, WithAnIntervalOfStepsThatIsNoneIsRefused) {
  json document = document_of(examples::scale());
  document["rows"][1]["iteration_low_ms"] = 1e6;
  EXPECT_THAT(complaint(document.dump()), HasSubstr("'rows[1]' is not in order"));
  document["rows"][1].erase("iteration_low_ms");
  EXPECT_THAT(complaint(document.dump()), HasSubstr("'rows[1]' has one of"));
}

TEST(Result, APublishedRunWithoutItsFiguresIsRefused) {
  for (const char* key : {"held_out", "published_efficiency"}) {
    json document = document_of(examples::published_runs());
    json& row = document["rows"][1];
    if (row[key].is_boolean())
      row.erase(key);
    else
      row[key] = nullptr;
    EXPECT_THAT(complaint(document.dump()), HasSubstr("'rows[1]' has published_run, and not all of")) << key;
  }
}

TEST(Result, BytesThatAreNotUtf8DoNotKeepItFromBeingWritten) {
  const TemporaryFolder folder;
  ResultFile file = examples::train();
  file.command = "polyring train -J \xff.json";
  EXPECT_THAT(read_result(write_result(folder / "a.json", file)).command, HasSubstr("polyring train -J"));
}

TEST(Result, NeverReplacesAFile) {
  const TemporaryFolder folder;
  const ResultFile file = examples::train();
  EXPECT_EQ(write_result(folder / "a.json", file), folder / "a.json");
  EXPECT_EQ(write_result(folder / "a.json", file), folder / "a.json.1");
  EXPECT_EQ(write_result(folder / "a.json", file), folder / "a.json.2");
  EXPECT_EQ(files_in(folder), 3u) << "temporary files were left behind";
}

TEST(Result, ThatCannotBeWrittenIsRefusedBeforeTheMeasurement) {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  for (const std::filesystem::path& bad :
       {folder / "none/a.json", folder / "file/a.json", folder.path(),
        std::filesystem::path(folder.path().string() + "/"), std::filesystem::path("/proc/a.json"),
        std::filesystem::path("")}) {
    try {
      check_writable(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), HasSubstr("cannot write '" + bad.string() + "'"));
    }
    EXPECT_THROW(write_result(bad, examples::train()), Error) << bad;
  }
  check_writable(folder / "new.json");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(Result, RecordsOnlyAllowedVariables) {
  EXPECT_TRUE(is_recorded("NCCL_ALGO"));
  EXPECT_TRUE(is_recorded("OMP_NUM_THREADS"));
  EXPECT_FALSE(is_recorded("OMP_NUM_THREADS_SECRET"));
  EXPECT_FALSE(is_recorded("OMPI_MCA_orte_hnp_uri"));
  EXPECT_FALSE(is_recorded("AWS_SECRET_ACCESS_KEY"));
  EXPECT_FALSE(is_recorded(""));

  ::setenv("NCCL_POLYRING_TEST", "a=b", 1);
  EXPECT_EQ(recorded_environment().at("NCCL_POLYRING_TEST"), "a=b");
  EXPECT_FALSE(recorded_environment().contains("PATH"));
  ::unsetenv("NCCL_POLYRING_TEST");

  ResultFile file = examples::scale();
  file.environment["SECRET_TOKEN"] = "x";
  EXPECT_FALSE(document_of(file)["environment"].contains("SECRET_TOKEN"));
}

TEST(Result, TimeGivesTheBandwidthsOfNcclTests) {
  CollectiveRow row;
  row.ranks = 4;
  row.size_bytes = 1'000'000;
  row.bound_us = 50;
  set_time(row, timing({100, 90, 110}), "allreduce");
  EXPECT_DOUBLE_EQ(row.algbw_GBps, 10);
  EXPECT_DOUBLE_EQ(row.busbw_GBps, 15);
  EXPECT_DOUBLE_EQ(row.bound_fraction.value(), 0.5);
  row.ranks = 1;
  set_time(row, exact_timing(0), "allreduce");
  EXPECT_EQ(row.algbw_GBps, 0);
  EXPECT_EQ(row.busbw_GBps, 0);
  for (const std::string_view collective : {"reduce-scatter", "allgather", "alltoall"}) {
    set_time(row, timing({100, 90, 110}), collective);
    EXPECT_DOUBLE_EQ(row.busbw_GBps, row.algbw_GBps * (row.ranks - 1) / row.ranks);
  }
}

TEST(Result, HasNoFractionOfABoundThatDoesNotHold) {
  CollectiveRow row;
  row.bound_us = 105;
  set_time(row, timing({100, 90, 110}), "allreduce");  // within noise
  EXPECT_DOUBLE_EQ(row.bound_fraction.value(), 1.05);
  set_time(row, timing({100, 99, 104}), "allreduce");
  EXPECT_FALSE(row.bound_fraction);
}

TEST(Result, CreationTimeIsIso8601) {
  EXPECT_THAT(iso_time_now(), testing::MatchesRegex("20..-..-..T..:..:..Z"));
}

TEST(BadResult, IsRefusedWithASentence) {
  const std::string whole = document_of(examples::train()).dump();
  EXPECT_THAT(complaint(""), HasSubstr("not whole JSON"));
  EXPECT_THAT(complaint("size time\n1 2\n"), HasSubstr("not whole JSON"));
  EXPECT_THAT(complaint(whole.substr(0, whole.size() / 2)), HasSubstr("not whole JSON"));
  EXPECT_THAT(complaint("[1, 2]"), HasSubstr("not a polyring result"));
  EXPECT_THAT(complaint(R"({"format": "other"})"), HasSubstr("not a polyring result"));
  EXPECT_THAT(complaint(R"({"format": "polyring-result", "version": 2})"),
              AllOf(HasSubstr("version 2"), HasSubstr("use a newer polyring")));
  EXPECT_THAT(complaint(R"({"format": "polyring-result", "version": 0})"), HasSubstr("'version' is below 1"));
  EXPECT_EQ(complaint(whole), "");
}

TEST(BadResult, ThatIsMissingOrAFolderIsRefused) {
  const TemporaryFolder folder;
  for (const std::filesystem::path& bad : {folder / "none.json", folder.path()}) {
    try {
      read_result(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), HasSubstr(bad.string()));
    }
  }
}

/// What only some rows and results have.
bool may_be_absent(const std::string& key) {
  const std::set<std::string> keys{"iteration_low_ms",
                                   "iteration_high_ms",
                                   "efficiency_low",
                                   "efficiency_high",
                                   "feed_GBps",
                                   "limit",
                                   "rails",
                                   "bottleneck",
                                   "global_batch",
                                   "strategy",
                                   "leaves",
                                   "rounds",
                                   "ended",
                                   "bubble",
                                   "title",
                                   "framework",
                                   "published_run",
                                   "widest_unknown",
                                   "conditions",
                                   "timing",
                                   "partial"};
  return keys.contains(key);
}

TEST(BadResult, EveryMissingKeyIsNamed) {
  for (const ResultFile& example : all_examples()) {
    const json whole = document_of(example);
    for (const auto& item : whole.items()) {
      if (may_be_absent(item.key())) continue;
      json damaged = whole;
      damaged.erase(item.key());
      const std::string expected =
          item.key() == "format" ? "not a polyring result" : "'" + item.key() + "' is missing";
      EXPECT_THAT(complaint(damaged.dump()), HasSubstr(expected));
    }
    for (const auto& item : whole["rows"][1].items()) {
      if (may_be_absent(item.key())) continue;
      json damaged = whole;
      damaged["rows"][1].erase(item.key());
      const std::string expected = item.key() == "held_out"
                                       ? "'rows[1]' has published_run, and not all of held_out"
                                       : "'rows[1]." + item.key() + "' is missing";
      EXPECT_THAT(complaint(damaged.dump()), HasSubstr(expected));
    }
  }
}

TEST(BadResult, OneEndOfAnIntervalIsNone) {
  const json whole = document_of(examples::scale());
  for (const std::string ends : {"iteration_low_ms iteration_high_ms", "efficiency_low efficiency_high"}) {
    const std::string low = ends.substr(0, ends.find(' '));
    const std::string high = ends.substr(ends.find(' ') + 1);
    for (const std::string& key : {low, high}) {
      json damaged = whole;
      ASSERT_EQ(damaged["rows"][1].erase(key), 1u);
      EXPECT_THAT(complaint(damaged.dump()), HasSubstr("one of " + low + " and " + high));
    }
  }
}

TEST(BadResult, EveryWrongTypeAndNegativeNumberIsNamed) {
  for (const ResultFile& example : all_examples()) {
    const json whole = document_of(example);
    for (const auto& item : whole["rows"][0].items()) {
      json damaged = whole;
      // A null may be any number or object.
      const bool is_text = item.value().is_string();
      damaged["rows"][0][item.key()] = is_text ? json::object() : json("text");
      EXPECT_THAT(complaint(damaged.dump()), HasSubstr("'rows[0]." + item.key() + "' is n"));
      if (!item.value().is_number()) continue;
      damaged["rows"][0][item.key()] = -1;
      EXPECT_THAT(complaint(damaged.dump()), HasSubstr("'rows[0]." + item.key() + "' is "));
    }
  }
}

TEST(BadResult, ValuesThatMakeNoSenseAreNamed) {
  const json allreduce = document_of(examples::allreduce());
  const auto with = [&](const char* pointer, const json& value) {
    json damaged = allreduce;
    damaged[json::json_pointer(pointer)] = value;
    return complaint(damaged.dump());
  };
  EXPECT_THAT(with("/rows/0/ranks", 0), HasSubstr("'rows[0].ranks' is below 1"));
  EXPECT_THAT(with("/rows/0/ranks", 1.5), HasSubstr("'rows[0].ranks' is not a whole number"));
  EXPECT_THAT(with("/rows/0/ranks", 1ull << 40), HasSubstr("'rows[0].ranks' is too large"));
  EXPECT_THAT(with("/rows/0/source", "guessed"),
              HasSubstr("'rows[0].source' is 'guessed' and none of measured"));
  EXPECT_THAT(with("/rows/0/time_us/samples/3", "x"),
              HasSubstr("'rows[0].time_us.samples[3]' is not a number"));
  EXPECT_THAT(with("/rows/0/time_us/ci_low", 1e9), HasSubstr("'rows[0].time_us' is not in order"));
  EXPECT_THAT(with("/kind", "latency"), HasSubstr("'kind' is 'latency' and none of allreduce"));
  EXPECT_THAT(with("/rows", json::object()), HasSubstr("'rows' is not a list"));
  EXPECT_THAT(with("/rows/0", 7), HasSubstr("'rows[0]' is not an object"));
  EXPECT_THAT(with("/environment/OMP_NUM_THREADS", 7),
              HasSubstr("'environment.OMP_NUM_THREADS' is not text"));
  EXPECT_THAT(with("/placement/0/rank", -1), HasSubstr("'placement[0].rank' is below 0"));

  json train = document_of(examples::train());
  train["rows"][0]["timeline"][1]["end_ms"] = 0;
  EXPECT_THAT(complaint(train.dump()), HasSubstr("'rows[0].timeline[1]' ends before it begins"));
}

TEST(ResultSchema, IsTheFileThatIsKept) {
  const std::filesystem::path file = tests_folder().parent_path() / "reports/result.schema.json";
  if (std::getenv("POLYRING_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << result_schema();
  EXPECT_EQ(read_file(file), result_schema()) << "POLYRING_UPDATE_GOLDEN=1 rewrites it";
}

}  // namespace
}  // namespace polyring
