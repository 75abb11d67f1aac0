#include "collectives/runtime/mpi/process_manager.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace polyring {
namespace {

std::string version_text(const std::string& version, const std::string& device) {
  return "MPICH Version:\t" + version +
         "\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\nMPICH Device:\t" + device + "\n";
}

/// A process manager's end of a socket, and PMI_FD with the other one.
class Socket {
 public:
  Socket() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0);
    setenv("PMI_FD", std::to_string(ends_[0]).c_str(), 1);
  }
  ~Socket() {
    for (const int end : ends_) close(end);
    unsetenv("PMI_FD");
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int manager() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_{};
};

TEST(ProcessManager, MayHangInFinalize) {
  for (const char* version : {"3.4.3", "4.0", "4.0.2", "4.1.2"}) {
    EXPECT_TRUE(may_hang_in_finalize(version_text(version, "ch4:ucx"))) << version;
    EXPECT_FALSE(may_hang_in_finalize(version_text(version, "ch4:ofi"))) << version;
  }
  for (const char* version : {"4.2.0", "4.10.1", "5.0", "unreleased", "", "4"}) {
    EXPECT_FALSE(may_hang_in_finalize(version_text(version, "ch4:ucx"))) << version;
  }
  EXPECT_FALSE(may_hang_in_finalize("Open MPI v4.1.4, package: Debian OpenMPI"));
  EXPECT_FALSE(may_hang_in_finalize("MPICH Version:"));
  EXPECT_FALSE(may_hang_in_finalize(""));
}

TEST(ProcessManager, SpeaksPmi1WithMpichsOwnClientAlone) {
  const std::string text = "MPICH configure:\t--prefix=/usr --with-slurm=/usr ";
  EXPECT_FALSE(speaks_pmi1(text));
  for (const char* descriptor : {"", "none", "-1", "100000", "0"}) {
    setenv("PMI_FD", descriptor, 1);
    EXPECT_FALSE(speaks_pmi1(text)) << descriptor;
  }
  const Socket socket;
  EXPECT_TRUE(speaks_pmi1(text));
  EXPECT_TRUE(speaks_pmi1(text + "--with-pmi=simple --with-ucx=/usr"));
  for (const char* client :
       {"--with-pmi=slurm", "--with-pmi=pmi2/simple ", "--with-pmi2=/opt", "--with-pmix=/usr"})
    EXPECT_FALSE(speaks_pmi1(text + client)) << client;
  for (const char* version : {"1", "2", "x"}) {
    setenv("MPIR_CVAR_PMI_VERSION", version, 1);
    EXPECT_EQ(speaks_pmi1(text), *version == '1') << version;
  }
  unsetenv("MPIR_CVAR_PMI_VERSION");
}

TEST(ProcessManager, IsToldToEndTheJob) {
  const Socket socket;
  std::string told;
  std::thread manager([&told, end = socket.manager()] {
    std::array<char, 64> text{};
    const ssize_t length = read(end, text.data(), text.size());
    told.assign(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    shutdown(end, SHUT_RDWR);
  });
  abort_process_manager(4);
  manager.join();
  EXPECT_EQ(told, "cmd=abort exitcode=4\n");
  abort_process_manager(4);  // it has gone
}

TEST(ProcessManager, IsToldThatTheRankEnds) {
  const Socket socket;
  std::string told;
  std::thread manager([&told, end = socket.manager()] {
    std::array<char, 64> text{};
    const ssize_t length = read(end, text.data(), text.size());
    told.assign(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    EXPECT_EQ(write(end, "cmd=finalize_ack\n", 17), 17);
    shutdown(end, SHUT_RDWR);
  });
  EXPECT_TRUE(leave_process_manager());
  manager.join();
  EXPECT_EQ(told, "cmd=finalize\n");
  EXPECT_FALSE(leave_process_manager()) << "it has gone";
}

/// Standard error as a pipe, for as long as this lives.
class PipedError {
 public:
  PipedError() : stderr_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe(ends_.data()), 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~PipedError() {
    dup2(stderr_, STDERR_FILENO);
    for (const int end : {ends_[0], ends_[1], stderr_}) close(end);
  }
  PipedError(const PipedError&) = delete;
  PipedError& operator=(const PipedError&) = delete;
  int reader() const { return ends_[0]; }

 private:
  int stderr_;
  std::array<int, 2> ends_{};
};

TEST(ProcessManager, HasReadWhatWasWritten) {
  const PipedError error;
  await_output_read();  // nothing was
  ASSERT_EQ(write(STDERR_FILENO, "words", 5), 5);
  std::atomic<bool> is_read = false;
  std::thread manager([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::array<char, 5> text{};
    is_read = true;
    EXPECT_EQ(read(error.reader(), text.data(), text.size()), 5);
  });
  await_output_read();
  EXPECT_TRUE(is_read);
  manager.join();
}

TEST(ProcessManager, MayReadNothingAnyMore) {
  const PipedError error;
  ASSERT_EQ(write(STDERR_FILENO, "words", 5), 5);
  const auto begin = std::chrono::steady_clock::now();
  await_output_read();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

}  // namespace
}  // namespace polyring
