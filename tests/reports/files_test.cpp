#include "base/files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "base/naming.hpp"
#include "reports/result.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

using examples::TemporaryFolder;
using testing::HasSubstr;
namespace fs = std::filesystem;

/// Starts a process that does this, and ends with 1 when it throws.
template <typename Action>
pid_t start(const Action& action) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    action();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    _exit(1);
  }
  _exit(0);
}

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

/// So many processes do this at once, each with its number; all end well.
template <typename Action>
void at_once(int processes, const Action& action) {
  std::array<int, 2> gate{};
  ASSERT_EQ(pipe(gate.data()), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(start([&] {
      close(gate[1]);
      char closed = 0;
      EXPECT_EQ(read(gate[0], &closed, 1), 0);
      action(i);
    }));
  }
  close(gate[0]);
  close(gate[1]);
  for (const pid_t child : children) EXPECT_EQ(status_of(child), 0);
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

bool is_hidden(const std::string& name) { return name.starts_with("."); }

/// Which code this ends with.
template <typename Action>
ExitCode code_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ExitCode::ok;
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

TEST(Files, AreNeverOpenedUnderTheirFinalNames) {
  const TemporaryFolder folder;
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  ASSERT_GE(watch, 0);
  ASSERT_GE(inotify_add_watch(watch, folder.path().c_str(), IN_CREATE | IN_OPEN | IN_MODIFY | IN_MOVED_TO),
            0);
  create_file(folder / "a.json", "content");
  create_file(folder / "a.json", "content");
  create_folder(folder / "r", [](const fs::path& inside) { write_file(inside / "report.md", "text"); });
  std::array<char, 1 << 16> events{};
  const ssize_t bytes = read(watch, events.data(), events.size());
  close(watch);
  std::set<std::string> appeared;
  for (ssize_t at = 0; at < bytes;) {
    const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    const std::string name = event->len == 0 ? "" : event->name;
    if (name.empty() || is_hidden(name)) continue;
    EXPECT_EQ(event->mask & ~static_cast<unsigned>(IN_ISDIR), static_cast<unsigned>(IN_MOVED_TO)) << name;
    appeared.insert(name);
  }
  EXPECT_EQ(appeared, (std::set<std::string>{"a.json", "a.json.1", "r"}));
}

TEST(Files, AreWholeWhenTheWriterIsKilledAtAnyMoment) {
  const TemporaryFolder folder;
  const std::string content(300'000, 'x');
  std::mt19937 random(1);  // the moments differ from run to run all the same
  std::uniform_int_distribution<int> microseconds(0, 15'000);
  const auto visible = [&] { return std::ranges::count_if(names_in(folder.path()), std::not_fn(is_hidden)); };
  // At least some rounds must have come far enough, however slow the disk is.
  for (int round = 0; round < 30 || (visible() < 3 && round < 1000); ++round) {
    const pid_t child = start([&] {
      while (true) {
        create_file(folder / "a.json", content);
        update_file(folder / "kept", [&](const auto&) { return content; });
        create_folder(folder / "r", [&](const fs::path& inside) { write_file(inside / "b.json", content); });
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
    kill(child, SIGKILL);
    ASSERT_TRUE(WIFSIGNALED(status_of(child)));
  }
  for (const std::string& name : names_in(folder.path())) {
    if (is_hidden(name)) continue;
    const bool is_folder = fs::is_directory(folder / name);
    EXPECT_EQ(fs::file_size(is_folder ? folder / name / "b.json" : folder / name), content.size()) << name;
  }
  EXPECT_GE(visible(), 3);
  // Nor does the lock of one that was killed keep others out.
  update_file(folder / "kept", [](const auto&) { return "new"; });
  EXPECT_EQ(read_file(folder / "kept"), "new");
}

TEST(Files, DoNotFollowPlantedLinks) {
  const TemporaryFolder folder;
  write_file(folder / "victim", "precious");
  fs::create_directory(folder / "victims");
  // The temporary names of old.
  fs::create_symlink(folder / "victim", folder / fmt::format(".a.json.{}.tmp", getpid()));
  fs::create_symlink(folder / "victims", folder / fmt::format(".r.{}.tmp", getpid()));
  fs::create_symlink(folder / "victim", folder / "a.json");
  fs::create_symlink(folder / "nothing", folder / "a.json.1");
  fs::create_symlink(folder / "victims", folder / "r");
  fs::create_symlink(folder / "nothing", folder / "r.1");
  check_writable(folder / "a.json");
  EXPECT_EQ(create_file(folder / "a.json", "result"), folder / "a.json.2");
  EXPECT_EQ(create_open_file(folder / "a.json").path(), folder / "a.json.3");
  const auto fill = [](const fs::path& inside) { write_file(inside / "report.md", "text"); };
  EXPECT_EQ(create_folder(folder / "r", fill), folder / "r.2");
  update_file(folder / "a.json", [](const auto&) { return "kept"; });
  EXPECT_EQ(read_file(folder / "victim"), "precious");
  EXPECT_TRUE(fs::is_empty(folder / "victims"));
  EXPECT_FALSE(fs::exists(folder / "nothing"));
  EXPECT_FALSE(fs::is_symlink(folder / "r.2"));
}

// Whoever guesses its name could have put there what becomes a part of the report.
TEST(Files, FoldersAreNotMadeOfOnesThatOthersLeft) {
  const TemporaryFolder folder;
  const fs::path foreign = folder / fmt::format(".r.{}.tmp", getpid());
  fs::create_directory(foreign);
  write_file(foreign / "foreign", "");
  const fs::path made = create_folder(folder / "r", [](const fs::path& inside) {
    EXPECT_TRUE(fs::is_empty(inside));
    write_file(inside / "own", "");
  });
  EXPECT_EQ(names_in(made), std::set<std::string>{"own"});
  EXPECT_TRUE(fs::exists(foreign / "foreign"));
}

TEST(Files, OfWritersAtOnceAllAreThere) {
  constexpr int kWriters = 8;
  const TemporaryFolder folder;
  at_once(kWriters, [&](int i) {
    create_file(folder / "a.json", std::to_string(i));
    create_folder(folder / "r",
                  [&](const fs::path& inside) { write_file(inside / "own", std::to_string(i)); });
  });
  std::set<std::string> files;
  std::set<std::string> folders;
  for (int i = 0; i < kWriters; ++i) {
    const std::string ending = i == 0 ? "" : fmt::format(".{}", i);
    files.insert(read_file(folder / ("a.json" + ending)));
    folders.insert(read_file(folder / ("r" + ending) / "own"));
  }
  EXPECT_EQ(files.size(), static_cast<std::size_t>(kWriters));
  EXPECT_EQ(folders.size(), static_cast<std::size_t>(kWriters));
  EXPECT_EQ(names_in(folder.path()).size(), 2U * kWriters) << "temporary files were left behind";
}

// Not all file systems know all of these, but that of a temporary folder does.
class NamingTest : public testing::TestWithParam<Naming> {};
INSTANTIATE_TEST_SUITE_P(Ways, NamingTest, testing::ValuesIn(kNamings));

TEST_P(NamingTest, ReplacesNothing) {
  const TemporaryFolder folder;
  const fs::path from = folder / "from";
  fs::create_symlink(folder / "nothing", folder / "link");
  fs::create_directory(folder / "folder");
  write_file(folder / "file", "old");
  write_file(from, "new");
  for (const char* taken : {"link", "folder", "file"}) {
    EXPECT_EQ(give_name(from, folder / taken, GetParam()), Named::taken) << taken;
  }
  EXPECT_EQ(read_file(folder / "file"), "old");
  EXPECT_EQ(give_name(from, folder / "free", GetParam()), Named::yes);
  EXPECT_EQ(read_file(folder / "free"), "new");
  EXPECT_FALSE(fs::exists(from));
  EXPECT_EQ(give_name(from, folder / "other", GetParam()), Named::failed) << "it is not there";
}

TEST_P(NamingTest, GivesANameToOneOfManyAtOnce) {
  constexpr int kWriters = 8;
  constexpr int kNames = 20;
  const TemporaryFolder folder;
  at_once(kWriters, [&](int i) {
    for (int name = 0; name < kNames; ++name) {
      const fs::path own = folder / fmt::format("{}-{}.own", i, name);
      write_file(own, std::to_string(i));
      const Named named = give_name(own, folder / std::to_string(name), GetParam());
      if (named != Named::yes && named != Named::taken) throw std::runtime_error("no answer");
      if ((named == Named::taken) != fs::exists(own)) throw std::runtime_error("a file was lost");
    }
  });
  // Each name went to one, and all others have kept their files.
  EXPECT_EQ(names_in(folder.path()).size(), static_cast<std::size_t>(kWriters * kNames));
}

TEST(Naming, ByALookHappensUnderALock) {
  const TemporaryFolder folder;
  write_file(folder / "from", "new");
  const int locked = open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(locked, LOCK_EX), 0);
  const pid_t child = start([&] {
    close(locked);
    if (give_name(folder / "from", folder / "to", Naming::lock) != Named::taken) _exit(2);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(fs::exists(folder / "to")) << "it did not wait";
  write_file(folder / "to", "old");
  close(locked);
  EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(read_file(folder / "to"), "old");
}

TEST(Files, ChangesAtOnceAreAllKept) {
  constexpr int kWriters = 6;
  constexpr int kTimes = 15;
  const TemporaryFolder folder;
  at_once(kWriters, [&](int i) {
    for (int time = 0; time < kTimes; ++time) {
      update_file(folder / "kept", [&](const std::optional<std::string>& old) {
        return old.value_or("") + fmt::format("{} {}\n", i, time);
      });
    }
  });
  const std::string kept = read_file(folder / "kept");
  EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), kWriters * kTimes);
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"kept"});
}

TEST(Files, HaveTheModesThatTheUmaskLeaves) {
  const TemporaryFolder folder;
  const mode_t before = umask(027);
  EXPECT_EQ(mode_of(create_file(folder / "a.json", "")), 0640U);
  EXPECT_EQ(mode_of(create_open_file(folder / "b.json").path()), 0640U);
  EXPECT_EQ(mode_of(create_folder(folder / "r", [](const fs::path&) {})), 0750U);
  update_file(folder / "kept", [](const auto&) { return ""; });
  EXPECT_EQ(mode_of(folder / "kept"), 0640U);
  umask(before);
}

TEST(Files, OfAFolderThatWentAwayAreNotWritten) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "gone");
  check_writable(folder / "gone/a.json");
  fs::remove(folder / "gone");
  EXPECT_EQ(code_of([&] { check_writable(folder / "gone/a.json"); }), ExitCode::usage);
  EXPECT_EQ(code_of([&] { create_open_file(folder / "gone/a.json"); }), ExitCode::usage);
  EXPECT_EQ(code_of([&] { create_file(folder / "gone/a.json", "x"); }), ExitCode::output);
  EXPECT_EQ(code_of([&] { update_file(folder / "gone/a.json", [](const auto&) { return "x"; }); }),
            ExitCode::output);
  const auto in_the_way = [&](const fs::path& inside) {
    write_file(inside / "a", "");
    fs::remove_all(folder / "up");
    write_file(folder / "up", "");
  };
  EXPECT_EQ(code_of([&] { create_folder(folder / "up/r", in_the_way); }), ExitCode::output);
}

// As on a full disk, for which a test needs one.
TEST(Files, ThatMayNotGrowAreNotWritten) {
  const TemporaryFolder folder;
  const pid_t child = start([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string content(10'000, 'x');
    const auto fill = [&](const fs::path& inside) { write_file(inside / "a", content); };
    const auto expect = [](ExitCode code) {
      if (code != ExitCode::output) _exit(2);
    };
    expect(code_of([&] { create_file(folder / "a.json", content); }));
    expect(code_of([&] { create_folder(folder / "r", fill); }));
    expect(code_of([&] { update_file(folder / "kept", [&](const auto&) { return content; }); }));
    expect(code_of([&] { create_open_file(folder / "journal").write(content); }));
    fs::remove(folder / "journal");
  });
  EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{});
}

TEST(Files, ThatGrowInSightAreNotReplacedEither) {
  const TemporaryFolder folder;
  write_file(folder / "journal", "mine");
  const OpenFile journal = create_open_file(folder / "journal");
  EXPECT_EQ(journal.path(), folder / "journal.1");
  journal.write("one\n");
  journal.sync();
  EXPECT_EQ(read_file(journal.path()), "one\n");
  journal.write("two\n");
  EXPECT_EQ(publish_file(journal.path(), folder / "journal"), folder / "journal.2");
  EXPECT_EQ(read_file(folder / "journal.2"), "one\ntwo\n");
  EXPECT_EQ(read_file(folder / "journal"), "mine");
}

TEST(Files, OfLinesAreOpenedAgainWithoutTheirTornEnd) {
  const TemporaryFolder folder;
  const std::string long_line(200'000, 'x');
  for (const auto& [torn, whole] : {std::pair<std::string, std::string>{"a\nb\n", "a\nb\n"},
                                    {"a\nb", "a\n"},
                                    {"b", ""},
                                    {"", ""},
                                    {"a\n" + long_line, "a\n"},
                                    {long_line + "\n" + long_line, long_line + "\n"}}) {
    const fs::path path = folder / "lines";
    fs::remove(path);
    write_file(path, torn);
    reopen_file_of_lines(path).write("end\n");
    EXPECT_EQ(read_file(path), whole + "end\n");
  }
  fs::create_symlink(folder / "lines", folder / "link");
  for (const fs::path& bad : {folder / "none", folder / "link", folder.path()})
    EXPECT_EQ(code_of([&] { reopen_file_of_lines(bad); }), ExitCode::usage) << bad;
}

TEST(Files, AreOnesOwnWhereNobodyElseMayWrite) {
  const TemporaryFolder folder;
  const fs::path path = create_file(folder / "ranks", "rank 0");
  EXPECT_TRUE(is_own_file(path, "rank 0"));
  EXPECT_FALSE(is_own_file(path, "rank 1"));
  EXPECT_FALSE(is_own_file(path, "rank 0 "));
  fs::create_symlink(path, folder / "link");
  EXPECT_FALSE(is_own_file(folder / "link", "rank 0"));
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(is_own_file(path, "rank 0"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(is_own_file(folder / "pipe", ""));
  EXPECT_FALSE(is_own_file(folder / "none", ""));
}

TEST(Files, MayHaveLongNames) {
  const TemporaryFolder folder;
  const fs::path path = folder / std::string(255, 'n');
  EXPECT_EQ(create_file(path, "x"), path);
  update_file(path, [](const auto& old) { return *old + "y"; });
  EXPECT_EQ(read_file(path), "xy");
}

TEST(Files, ThatAreTooLargeAreNotRead) {
  const TemporaryFolder folder;
  write_file(folder / "large", "");
  fs::resize_file(folder / "large", std::uintmax_t{1} << 33);
  EXPECT_EQ(code_of([&] { read_file(folder / "large"); }), ExitCode::usage);
}

}  // namespace
}  // namespace polyring
