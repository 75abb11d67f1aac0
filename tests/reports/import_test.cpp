// What is true of all formats of logs.
#include "reports/import/import.hpp"

#include <unistd.h>

#include <fstream>

#include "base/error.hpp"
#include "reports/result_text.hpp"
#include "tests/reports/examples.hpp"
#include "tests/reports/logs.hpp"

namespace polyring {
namespace {

/// The sentence with which a file is refused.
std::string refusal_of(const std::filesystem::path& path) {
  try {
    import_log(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Import, RefusesWhatIsNoLog) {
  EXPECT_REFUSED("hello\n", "'x.log' is neither a result of polyring nor a log of nccl-tests, OSU, ");
  EXPECT_REFUSED("", "neither a result");
  EXPECT_REFUSED(std::string("# nThread \0", 11), "binary or UTF-16");
  EXPECT_NE(refusal_of(std::filesystem::temp_directory_path()).find("is a folder; give a log in it"),
            std::string::npos);
  EXPECT_NE(refusal_of("/nowhere/at.all").find("/nowhere/at.all"), std::string::npos);
}

TEST(Import, ReadsOwnResultsAsTheyAre) {
  const ResultFile result = examples::allreduce();
  const auto files = parse_log(result_text(result), "x.json");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0], result);
}

TEST(Import, RefusesAGigabyteBeforeItIsRead) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("polyring-import-{}", ::getpid());
  std::ofstream(path).put('#');
  std::filesystem::resize_file(path, 1u << 30);
  const std::string said = refusal_of(path);
  std::filesystem::remove(path);
  EXPECT_NE(said.find("has 1073741824 bytes, and logs of up to 64MiB are read"), std::string::npos) << said;
}

TEST(Import, ReadsSeveralBenchmarksOfOneFileInTheirOrder) {
  const auto files =
      parse_log(small_log("gloo.txt") + small_log("nccl_old.txt") + small_log("mpibench.txt"), "x.log");
  ASSERT_EQ(files.size(), 5u);
  EXPECT_EQ(rows_of(files[0])[0].implementation, "Gloo's benchmark");
  EXPECT_EQ(rows_of(files[1])[0].implementation, "nccl-tests");
  EXPECT_EQ(files[2].collective, "allreduce");
  EXPECT_EQ(rows_of(files[4])[0].implementation, "mpiBench 1.5");
}

TEST(Import, NamesRunsWithoutARow) {
  const std::string text = small_log("osu.txt");
  const auto files = parse_log(text.substr(0, text.rfind("1       ")), "x.log");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(notes_say(files[0], "no whole row of it: allgather (line 23)"));
  EXPECT_REFUSED(text.substr(text.rfind("# OSU"), 60),
                 "is of OSU and has no whole row in it: the run was aborted or the log cut; run it again");
  EXPECT_REFUSED(text.substr(text.rfind("# OSU"), 60) + "\nMPI_Abort\n", "the run was aborted: 'MPI_Abort'");
}

TEST(Import, ALastLineWithoutEndIsLeftOut) {
  const std::string text = small_log("osu_nccl.txt");
  const auto files = parse_log(text.substr(0, text.size() - 2), "x.log", {.ranks = 4});
  EXPECT_EQ(rows_of(files[0]).size(), 1u) << "not 8955.1, of 8955.18";
  EXPECT_TRUE(notes_say(files[0], "last line, 9, has no end and is left out"));
}

TEST(Import, TimesThatCannotBeAreLeftOut) {
  for (const char* us : {"1e-99", "1e300"}) {
    const auto files = parse_log(with(small_log("osu_nccl.txt"), "55.18", us), "x.log", {.ranks = 4});
    EXPECT_EQ(rows_of(files[0]).size(), 1u);
    EXPECT_TRUE(notes_say(files[0], "1 row torn or contradictory and left out: line 8"));
  }
}

TEST(Import, LinesMayEndAsOnWindows) {
  std::string text;
  for (const char c : small_log("imb.txt")) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(parse_log(text, "x.log")[0].rows, read_small_log("imb.txt")[0].rows);
}

TEST(Import, RefusesRanksAndSizesThatCannotBe) {
  EXPECT_REFUSED(small_log("osu_nccl.txt"), "--ranks", {.ranks = 0});
  EXPECT_REFUSED(with(small_log("osu.txt"), "1024                    8.50", "18446744073709551615    8.50"),
                 "cannot be");
}

}  // namespace
}  // namespace polyring
