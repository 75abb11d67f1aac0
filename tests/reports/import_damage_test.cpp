// Damaged logs of all formats, small and real: cut, glued, and printed into each other.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "reports/result_text.hpp"
#include "tests/reports/logs.hpp"

namespace polyring {
namespace {

/// What can be read of a log; nothing where it is refused.
std::vector<ResultFile> read(const std::string& text, const ImportOptions& options) {
  try {
    return parse_log(text, "x.log", options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
    return {};
  }
}

bool says_it_may_be_cut(const ResultFile& file) {
  return file.partial || notes_say(file, "no end mark") || notes_say(file, "may be cut") ||
         notes_say(file, "no whole row of it");
}

/// A log that was cut has the first rows of the intact one, and says where some are missing.
void expect_cut_is_told(const TestLog& log, const std::vector<ResultFile>& whole, std::size_t end) {
  const auto cut = read(log.text.substr(0, end), log.options);
  ASSERT_LE(cut.size(), whole.size());
  for (std::size_t i = 0; i < cut.size(); ++i) {
    EXPECT_EQ(cut[i].collective, whole[i].collective);
    const auto& rows = rows_of(cut[i]);
    const auto& all = rows_of(whole[i]);
    ASSERT_LE(rows.size(), all.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      CollectiveRow expected = all[row];
      // A later cycle may be missing, and NCCL may say later what it was told.
      const auto& samples = rows[row].time_us.samples;
      if (samples.size() < expected.time_us.samples.size()) {
        EXPECT_TRUE(std::equal(samples.begin(), samples.end(), expected.time_us.samples.begin()));
        set_time(expected, rows[row].time_us, whole[i].collective);
        EXPECT_TRUE(says_it_may_be_cut(cut[i]));
      }
      EXPECT_EQ(rows[row], expected) << rows[row].size_bytes;
    }
    EXPECT_TRUE(rows.size() == all.size() || says_it_may_be_cut(cut[i]));
  }
}

TEST(DamagedLog, CutBehindAnyLine) {
  for (const TestLog& log : all_logs()) {
    const auto whole = parse_log(log.text, "x.log", log.options);
    for (std::size_t end = log.text.find('\n'); end != std::string::npos;
         end = log.text.find('\n', end + 1)) {
      SCOPED_TRACE(fmt::format("{} cut behind '{}'", log.name,
                               log.text.substr(log.text.rfind('\n', end - 1) + 1, 60)));
      expect_cut_is_told(log, whole, end + 1);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(DamagedLog, CutWithinLines) {
  for (const TestLog& log : all_logs()) {
    const auto whole = parse_log(log.text, "x.log", log.options);
    const std::size_t step = std::max<std::size_t>(log.text.size() / 150, 1);
    for (std::size_t end = 1; end < log.text.size(); end += step) {
      SCOPED_TRACE(fmt::format("{} cut at {}", log.name, end));
      expect_cut_is_told(log, whole, end);
      if (HasFatalFailure()) return;
    }
  }
}

/// Without the time of reading and the notes, which have line numbers.
std::vector<ResultFile> comparable(std::vector<ResultFile> files) {
  for (ResultFile& file : files) {
    file.created.clear();
    file.notes.clear();
  }
  return files;
}

TEST(DamagedLog, GluedLogsAreToldApartOrRefused) {
  for (const TestLog& log : all_logs()) {
    SCOPED_TRACE(log.name);
    const auto one = comparable(parse_log(log.text, "x.log", log.options));
    const auto both = comparable(read(log.text + log.text, log.options));
    if (both.empty()) continue;
    ASSERT_EQ(both.size(), 2 * one.size());
    for (std::size_t i = 0; i < both.size(); ++i) {
      EXPECT_EQ(both[i].collective, one[i % one.size()].collective);
      EXPECT_EQ(both[i].rows, one[i % one.size()].rows);
      EXPECT_EQ(both[i].placement, one[i % one.size()].placement);
      EXPECT_EQ(both[i].partial, one[i % one.size()].partial);
    }
  }
}

TEST(DamagedLog, ACutLogBeforeAWholeOneLeavesThatAsItIs) {
  for (const TestLog& log : all_logs()) {
    const auto one = comparable(parse_log(log.text, "x.log", log.options));
    const std::size_t step = std::max<std::size_t>(log.text.size() / 40, 1);
    for (std::size_t cut = log.text.find('\n', step); cut != std::string::npos;
         cut = log.text.find('\n', cut + step)) {
      SCOPED_TRACE(fmt::format("{} cut at {}", log.name, cut));
      const auto both = comparable(read(log.text.substr(0, cut + 1) + log.text, log.options));
      if (both.empty()) continue;
      ASSERT_GE(both.size(), one.size());
      for (std::size_t i = 0; i < one.size(); ++i) {
        const ResultFile& last = both[both.size() - one.size() + i];
        EXPECT_EQ(last.collective, one[i].collective);
        EXPECT_EQ(last.rows, one[i].rows);
        EXPECT_EQ(last.partial, one[i].partial);
      }
    }
  }
}

/// The lines of two processes that print the same, the second `delay` lines later.
std::string mixed(const std::string& text, std::size_t delay) {
  auto lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  std::string both;
  for (std::size_t i = 0; i < lines.size() + delay; ++i) {
    if (i < lines.size()) both += lines[i] + "\n";
    if (i >= delay) both += lines[i - delay] + "\n";
  }
  return both;
}

TEST(DamagedLog, TablesPrintedIntoEachOtherAreRefused) {
  for (const TestLog& log : all_logs()) {
    const auto lines = static_cast<std::size_t>(std::ranges::count(log.text, '\n'));
    if (lines < 3) continue;  // JSON of one line, which is glued then
    for (std::size_t delay = 0; delay < std::min<std::size_t>(lines / 2, 6); ++delay) {
      SCOPED_TRACE(fmt::format("{}, {} lines later", log.name, delay));
      // A table that ended before the other began is told apart from it, or named where its title is not its.
      const auto both = read(mixed(log.text, delay), log.options);
      const auto one = parse_log(log.text, "x.log", log.options);
      for (std::size_t i = 0; i < both.size(); ++i) EXPECT_EQ(both[i].rows, one[i % one.size()].rows);
      EXPECT_TRUE(both.empty() || both.size() == 2 * one.size() || notes_say(both[0], "Left out"));
      if (delay == 0) {
        EXPECT_REFUSED(mixed(log.text, delay), "'x.log' line ", log.options);
      }
    }
  }
}

TEST(DamagedLog, ImportedResultsAreWrittenAndReadBack) {
  for (const TestLog& log : all_logs()) {
    SCOPED_TRACE(log.name);
    for (const ResultFile& file : parse_log(log.text, log.name, log.options)) {
      EXPECT_EQ(parse_result(result_text(file), "x.json"), file);
      EXPECT_TRUE(notes_say(file, "Imported from '" + log.name + "', line "));
      for (const CollectiveRow& row : rows_of(file)) EXPECT_EQ(row.source, Source::imported);
    }
  }
}

/// The algorithm is taken from the title.
TEST(DamagedLog, BytesThatAreNoUtf8AreReplaced) {
  const auto files =
      parse_log("# OSU NC\xbd\xb1-CUDA Allreduce Latency Test v3.5\n# Size  Avg Latency(us)\n4  1.00\n",
                "x.log", {.ranks = 4});
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(rows_of(files[0])[0].algorithm, "nc��");
  EXPECT_EQ(parse_result(result_text(files[0]), "x.json"), files[0]);
}

}  // namespace
}  // namespace polyring
