// What the tests of imported logs share. Small logs of each format are the seeds of fuzzing,
// tests/fuzz/seeds/log/, all of 4 ranks; real ones are in the folder POLYRING_LOGS.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reports/import/import.hpp"

namespace polyring {

/// A log of the folder POLYRING_LOGS whose name begins so; nothing where the variable names no folder.
std::optional<std::filesystem::path> shared_log(const std::string& begin);
#define POLYRING_LOG(variable, begin)                                                         \
  const auto variable##_found = shared_log(begin);                                            \
  if (!variable##_found) GTEST_SKIP() << "POLYRING_LOGS names no folder of benchmarks' logs"; \
  const auto& variable = *variable##_found

/// The text of a small log.
std::string small_log(const std::string& name);
/// The same, read; of 4 ranks where it does not say.
std::vector<ResultFile> read_small_log(const std::string& name);

/// A log with what it needs to be read.
struct TestLog {
  std::string name;
  std::string text;
  ImportOptions options;
};
/// All small logs, and all real ones where there are any.
std::vector<TestLog> all_logs();

inline const std::vector<CollectiveRow>& rows_of(const ResultFile& file) {
  return std::get<std::vector<CollectiveRow>>(file.rows);
}

/// The row of a size; fails the test where there is none.
CollectiveRow row_of(const ResultFile& file, std::uint64_t bytes, bool in_place = false);

/// Whether one of the notes has this in it.
bool notes_say(const ResultFile& file, const std::string& what);

/// The sentence with which a log is refused; "" where it is read.
std::string refusal(const std::string& text, const ImportOptions& options = {});
#define EXPECT_REFUSED(text, what, ...)                                             \
  EXPECT_NE(refusal(text __VA_OPT__(, ) __VA_ARGS__).find(what), std::string::npos) \
      << refusal(text __VA_OPT__(, ) __VA_ARGS__)

/// A copy of `text` with the first `from` replaced; fails the test where there is none.
std::string with(std::string text, const std::string& from, const std::string& to);

}  // namespace polyring
