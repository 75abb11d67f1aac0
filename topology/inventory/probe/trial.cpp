#include "topology/inventory/probe/trial.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <exception>
#include <thread>
#include <utility>

#include "base/children.hpp"

namespace polyring::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kEndedByItself = 42;  // not a status that a crash handler exits with

[[noreturn]] void failed(const char* call) {
  throw Error(ExitCode::internal, fmt::format("{} failed: {}", call, std::strerror(errno)));
}

[[noreturn]] void run_in_child(const std::function<void()>& action) {
  prepare_to_crash();
  try {
    action();
  } catch (const std::exception&) {
    // An answer as good as any: the caller will get it too.
  }
  _exit(kEndedByItself);
}

/// The child's status, or nothing when it has not ended by then.
std::optional<int> wait_until(pid_t child, Clock::time_point deadline) {
  std::chrono::microseconds pause{50};
  constexpr std::chrono::microseconds kLongest{1000};
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) failed("waitpid");
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
  }
}

/// What a child process writes and its parent reads.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("answers", MFD_CLOEXEC)) {
    if (file_ < 0) failed("memfd_create");
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Whether all was written.
  bool write(const void* data, std::size_t bytes) const {
    return whole(bytes, [&](std::size_t done) {
      return ::write(file_, static_cast<const char*>(data) + done, bytes - done);
    });
  }

  /// Whether there was that much.
  bool read(void* data, std::size_t bytes) const {
    return whole(bytes, [&](std::size_t done) {
      return ::read(file_, static_cast<char*>(data) + done, bytes - done);
    });
  }

  /// Goes back to the file's start, and returns how long it is.
  std::size_t rewind() const {
    const off_t bytes = lseek(file_, 0, SEEK_END);
    if (bytes < 0 || lseek(file_, 0, SEEK_SET) < 0) failed("lseek");
    return static_cast<std::size_t>(bytes);
  }

 private:
  /// Whether calls that go on from what is done, each by what it returns, have done it all.
  template <typename Call>
  static bool whole(std::size_t bytes, const Call& call) {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t more = call(done);
      if (more < 0 && errno == EINTR) continue;
      if (more <= 0) return false;
      done += static_cast<std::size_t>(more);
    }
    return true;
  }

  int file_;
};

/// A child process that answers every stride-th question from the first on, and puts its answers into a
/// file in memory that the parent reads when it has ended.
class Answerer {
 public:
  struct Questions {
    std::size_t first, stride, count;
  };
  using Answer = std::function<std::string(std::size_t)>;

  Answerer(Questions questions, const Answer& answer, unsigned seconds) : questions_(questions) {
    child_ = fork();
    if (child_ < 0) failed("fork");
    if (child_ == 0) run(answer, seconds);
  }

  /// Waits, and moves the answers there. Returns what is left to answer when the child ended before its time,
  /// without the question at which it did.
  std::optional<Questions> collect(std::vector<std::optional<std::string>>& answers) {
    while (waitpid(child_, nullptr, 0) < 0) {
      if (errno != EINTR) failed("waitpid");
    }
    file_.rewind();
    std::size_t at = questions_.first;
    for (Header header; file_.read(&header, sizeof header); at += questions_.stride) {
      std::string text(header.bytes, '\0');
      if (!file_.read(text.data(), text.size())) break;
      if (header.answered) answers[at] = std::move(text);
    }
    at += questions_.stride;
    if (at >= questions_.count) return std::nullopt;
    return Questions{at, questions_.stride, questions_.count};
  }

 private:
  struct Header {
    bool answered;
    std::size_t bytes;
  };

  [[noreturn]] void run(const Answer& answer, unsigned seconds) const {
    prepare_to_crash();
    for (std::size_t at = questions_.first; at < questions_.count; at += questions_.stride) {
      alarm(seconds);
      Header header{};
      std::string text;
      try {
        text = answer(at);
        header = {true, text.size()};
      } catch (const std::exception&) {
        text.clear();  // no answer
      }
      if (!file_.write(&header, sizeof header) || !file_.write(text.data(), text.size())) break;
    }
    _exit(0);
  }

  Questions questions_;
  MemoryFile file_;
  pid_t child_ = 0;
};

}  // namespace

void prepare_to_crash() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM})
    std::signal(signal_number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
}

Ending try_out(const std::function<void()>& action, Seconds limit, const std::function<void()>& wait) {
  constexpr std::chrono::milliseconds kToDie{200};
  const auto start = Clock::now();
  const auto after = [&](Seconds time) {
    return start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.value));
  };
  const auto deadline = after(limit);
  const WaitableChildren waitable;
  const pid_t child = fork();
  if (child < 0) failed("fork");
  if (child == 0) run_in_child(action);
  const auto until = std::min(deadline, after(kLongWait));
  std::optional<int> status;
  if (limit.value > 0) status = wait_until(child, until);
  if (!status && until < deadline) {
    if (wait) wait();
    status = wait_until(child, deadline);
  }
  if (!status) {
    kill(child, SIGKILL);
    wait_until(child, Clock::now() + kToDie);
    return Ending::out_of_time;
  }
  return WIFEXITED(*status) && WEXITSTATUS(*status) == kEndedByItself ? Ending::by_itself : Ending::crashed;
}

TriedAnswer try_answer(const std::function<std::string()>& answer, Seconds limit) {
  const MemoryFile file;
  const Ending ending = try_out(
      [&] {
        const std::string text = answer();
        if (!file.write(text.data(), text.size())) std::abort();
      },
      limit);
  if (ending != Ending::by_itself) return {ending, {}};
  std::string text(file.rewind(), '\0');
  file.read(text.data(), text.size());
  return {ending, std::move(text)};
}

std::vector<std::optional<std::string>> trial_answers(std::size_t count,
                                                      const std::function<std::string(std::size_t)>& answer,
                                                      unsigned seconds) {
  constexpr std::size_t kMostChildren = 16;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t children = std::min({count, cores, kMostChildren});
  std::vector<std::optional<std::string>> answers(count);
  const WaitableChildren waitable;
  std::deque<Answerer> running;
  for (std::size_t i = 0; i < children; ++i)
    running.emplace_back(Answerer::Questions{i, children, count}, answer, seconds);
  for (; !running.empty(); running.pop_front()) {
    if (const auto left = running.front().collect(answers)) running.emplace_back(*left, answer, seconds);
  }
  return answers;
}

}  // namespace polyring::probe
