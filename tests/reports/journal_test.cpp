#include "reports/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.hpp"
#include "reports/report.hpp"
#include "reports/result_text.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

using examples::TemporaryFolder;
using testing::HasSubstr;
namespace fs = std::filesystem;

ResultFile without_rows(ResultFile file) {
  std::visit([](auto& rows) { rows.clear(); }, file.rows);
  return file;
}

/// Rows from `begin` to `end`.
Rows part(const Rows& rows, std::size_t begin, std::size_t end) {
  const auto cut = [&](const auto& all) {
    return Rows(std::decay_t<decltype(all)>(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                            all.begin() + static_cast<std::ptrdiff_t>(end)));
  };
  return std::visit(cut, rows);
}

std::size_t size_of(const Rows& rows) {
  return std::visit([](const auto& all) { return all.size(); }, rows);
}

/// A journal of all rows, two at a time.
fs::path journal_of(const fs::path& output, const ResultFile& file) {
  const std::size_t rows = size_of(file.rows);
  Journal journal(output, without_rows(file), rows);
  for (std::size_t first = 0; first < rows; first += 2) {
    const std::size_t end = std::min(first + 2, rows);
    journal.add(part(file.rows, first, end), first, end);
  }
  return journal.path();
}

TEST(Journal, OfEveryKindIsThePartialResult) {
  const TemporaryFolder folder;
  for (ResultFile example :
       {examples::allreduce(), examples::train(), examples::scale(), examples::tune(), examples::accept()}) {
    const fs::path path = journal_of(folder / "a.json", example);
    const std::size_t rows = size_of(example.rows);
    example.partial = fmt::format("{} of {} measurements", rows, rows);
    EXPECT_EQ(read_result(path), example);
    EXPECT_EQ(read_result(write_result(folder / "b.json", example)), example) << "a partial one";
  }
}

TEST(Journal, CutAnywhereHoldsWhatIsWholeInIt) {
  const TemporaryFolder folder;
  const ResultFile example = examples::train();
  const std::string whole = read_file(journal_of(folder / "a.json", example));
  const std::size_t head = whole.find('\n') + 1;
  const std::size_t first_row = whole.find('\n', head) + 1;
  const std::vector<std::pair<std::size_t, std::size_t>> cuts{
      {head, 0}, {head + 1, 0}, {first_row - 1, 0}, {first_row, 1}, {whole.size() - 1, 1}, {whole.size(), 2}};
  for (const auto& [cut, rows] : cuts) {
    const ResultFile read = parse_result(whole.substr(0, cut), "a.json.part");
    EXPECT_EQ(read.rows, part(example.rows, 0, rows)) << cut;
    EXPECT_EQ(read.command, example.command);
    EXPECT_TRUE(read.partial);
  }
  for (const std::size_t cut : {head - 1, head / 2, std::size_t{30}})
    EXPECT_THROW(parse_result(whole.substr(0, cut), "a.json.part"), Error) << cut;
}

TEST(Journal, TakesLaterRowsInPlaceOfEarlierOnesAndNotes) {
  const TemporaryFolder folder;
  const ResultFile example = examples::train();
  Journal journal(folder / "a.json", without_rows(example), 40);
  journal.add(part(example.rows, 0, 2), 0, 4);
  journal.add_note("who was late");
  journal.add(part(example.rows, 1, 2), 0, 6);
  const ResultFile read = read_result(journal.path());
  const auto& rows = std::get<std::vector<TrainRow>>(read.rows);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_EQ(read.notes.back(), "who was late");
  EXPECT_EQ(read.partial, "6 of 40 measurements");
}

TEST(Journal, HasWhatEachCheckOfARoundHasChanged) {
  const TemporaryFolder folder;
  ResultFile example = examples::accept();
  auto& rows = std::get<std::vector<CheckRow>>(example.rows);
  rows.resize(3);
  for (CheckRow& row : rows) row.trend = {1.5, 2.5};
  Journal journal(folder / "a.json", without_rows(example), 40);
  journal.add(RoundChange{{1, {}, 60}, {{0, rows[0]}, {1, rows[1]}, {2, rows[2]}}, {}}, 4);
  const std::uintmax_t first = fs::file_size(journal.path());
  CheckRow worse = rows[1];
  worse.verdict = Verdict::fail;
  journal.add(RoundChange{{1, {"links"}, 75.5}, {{1, worse}}, {{0, 7.5, 9, 10.5}, {2, {}, 3, 1}}}, 5);
  const std::string text = read_file(journal.path());
  const ResultFile read = read_result(journal.path());
  EXPECT_EQ(read.rounds, (Rounds{1, {"links"}, 75.5}));
  EXPECT_EQ(read.partial, "5 of 40 measurements");
  EXPECT_EQ(parse_result(text.substr(0, first), "a").rounds, (Rounds{1, {}, 60}));
  // A change counts whole, or not at all.
  for (const std::size_t cut : {first + 1, text.size() - 1})
    EXPECT_EQ(parse_result(text.substr(0, cut), "a").rows, parse_result(text.substr(0, first), "a").rows);
  rows[0].trend->push_back(7.5);
  rows[0].attempts = 9;
  rows[0].seconds = 10.5;
  rows[1] = worse;
  rows[2].attempts = 3;
  rows[2].seconds = 1;
  EXPECT_EQ(read.rows, example.rows);
  for (const auto& [from, to] : {std::pair{"\"at\":1,\"row\"", "\"at\":7,\"row\""},
                                 {"\"at\":2,\"median\"", "\"at\":3,\"median\""},
                                 {"\"points\"", "\"marks\""}}) {
    std::string damaged = text;
    damaged.replace(damaged.rfind(from), std::string(from).size(), to);
    EXPECT_THROW(parse_result(damaged, "a.json.part"), Error) << to;
  }
}

TEST(Journal, OfAProcessThatDiedGetsARow) {
  const TemporaryFolder folder;
  const ResultFile example = examples::accept();
  const std::string text = read_file(journal_of(folder / "a.json", example));
  const std::size_t rows = size_of(example.rows);
  CheckRow row;
  row.check = "ranks.alive";
  row.verdict = Verdict::fail;
  const fs::path path = folder / "b.json.part";
  // Whatever it has written of its last line is not there.
  for (const std::size_t cut : {text.size(), text.size() - 1, text.size() - 30}) {
    fs::remove(path);
    write_file(path, text.substr(0, cut));
    EXPECT_TRUE(add_to_journal(path, example.created, row));
    EXPECT_TRUE(add_to_journal(path, example.created, row));
    const auto found = std::get<std::vector<CheckRow>>(parse_journal_as_it_is(read_file(path), "b").rows);
    EXPECT_EQ(found.size(), rows + (cut == text.size() ? 2 : 1)) << cut;
    EXPECT_EQ(found.back(), row);
  }
  const std::string before = read_file(path);
  EXPECT_FALSE(add_to_journal(path, "2000-01-01T00:00:00Z", row)) << "of another run";
  EXPECT_FALSE(add_to_journal(folder / "none.part", example.created, row));
  write_file(folder / "c.json.part", "mine");
  EXPECT_FALSE(add_to_journal(folder / "c.json.part", example.created, row));
  EXPECT_EQ(read_file(path), before);
  EXPECT_EQ(read_file(folder / "c.json.part"), "mine");
}

TEST(Journal, SaysHowItsRunEnded) {
  const TemporaryFolder folder;
  ResultFile example = examples::accept();
  example.ended.reset();
  Journal journal(folder / "a.json", without_rows(example), 40);
  journal.add(part(example.rows, 0, 2), 0, 1);
  EXPECT_FALSE(read_result(journal.path()).ended);
  journal.add_end(part(example.rows, 2, 4), "it was interrupted");
  const ResultFile read = parse_journal_as_it_is(read_file(journal.path()), "a");
  EXPECT_EQ(read.ended, "it was interrupted");
  EXPECT_EQ(read.rows, part(example.rows, 0, 4));
  EXPECT_EQ(read.partial, "1 of 40 measurements");
}

TEST(Journal, TakesNoOthersName) {
  const TemporaryFolder folder;
  write_file(folder / "a.json.part", "mine");
  const Journal first(folder / "a.json", without_rows(examples::train()), 1);
  const Journal second(folder / "a.json", without_rows(examples::train()), 1);
  EXPECT_EQ(first.path(), folder / "a.json.1.part");
  EXPECT_EQ(second.path(), folder / "a.json.2.part");
  EXPECT_EQ(read_file(folder / "a.json.part"), "mine");
  second.remove();
  EXPECT_FALSE(fs::exists(second.path()));
}

TEST(Journal, DamagedInItsMidstIsRefused) {
  const TemporaryFolder folder;
  std::string text = read_file(journal_of(folder / "a.json", examples::train()));
  for (const auto& [from, to] : {std::pair{"\"at\":0", "\"at\":7"},
                                 {"\"row\"", "\"raw\""},
                                 {"\"measured\":2", "\"measured\":{}"},
                                 {"{\"measured\"", "measured"}}) {
    std::string damaged = text;
    damaged.replace(damaged.find(from), std::string(from).size(), to);
    EXPECT_THROW(parse_result(damaged, "a.json.part"), Error) << to;
  }
}

TEST(Journal, BecomesAReportThatSaysThatItIsPartial) {
  const TemporaryFolder folder;
  ::setenv("POLYRING_PYTHON", "/bin/false", 1);  // no pictures, which take seconds
  const fs::path path = journal_of(folder / "run.json", examples::tune());
  const Report report = write_report(std::vector{path}, folder / "r");
  ::unsetenv("POLYRING_PYTHON");
  EXPECT_EQ(report.warnings.front(), "run is partial: its run ended after 2 of 2 measurements");
  const std::string text = read_file(folder / "r/report.md");
  EXPECT_THAT(text, HasSubstr("**Partial**: the run ended after 2 of 2 measurements."));
  EXPECT_THAT(text, HasSubstr("## Tuning: run\n"));
  EXPECT_THAT(text, HasSubstr("2x2, 1 lane, ring+ring"));
  EXPECT_THAT(read_file(folder / "r/run.json"), HasSubstr("\"partial\": \"2 of 2 measurements\""));
}

}  // namespace
}  // namespace polyring
