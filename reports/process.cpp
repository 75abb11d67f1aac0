#include "reports/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "topology/error.hpp"

namespace polyring {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostAtOnce = 64;  // each takes two of our open files

/// Files rather than pipes: a program that fills one pipe while the other is read would hang.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File temporary_file() {
  File file(std::tmpfile(), &std::fclose);
  if (!file) usage_error("cannot make a temporary file: {}; free some room in /tmp", std::strerror(errno));
  ::fcntl(::fileno(file.get()), F_SETFD, FD_CLOEXEC);
  return file;
}

std::string content(std::FILE* file) {
  std::string text;
  std::array<char, 4096> block;
  std::rewind(file);
  while (const std::size_t read = std::fread(block.data(), 1, block.size(), file))
    text.append(block.data(), read);
  return text;
}

/// While one lives, the signals below wait until next() asks for them.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&held_);
    sigaddset(&held_, SIGCHLD);
    for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action {};
      sigaction(signal_number, nullptr, &action);
      if (action.sa_handler != SIG_IGN) sigaddset(&held_, signal_number);
    }
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  const sigset_t& before() const { return before_; }

  /// The next of them; its number is 0 when none comes within `patience`.
  siginfo_t next(Clock::duration patience) const {
    const auto nanoseconds =
        std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(patience).count());
    constexpr std::int64_t kSecond = 1'000'000'000;
    const timespec time{static_cast<time_t>(nanoseconds / kSecond), static_cast<long>(nanoseconds % kSecond)};
    siginfo_t signal{};
    if (sigtimedwait(&held_, &signal, &time) < 0) signal.si_signo = 0;
    return signal;
  }

 private:
  sigset_t held_;
  sigset_t before_;
};

std::vector<char*> argv_of(std::span<const std::string> arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  return argv;
}

/// Of a child that has ended: its exit code or 128 + the number of its signal. Nothing while it runs.
std::optional<int> exit_code_of(pid_t child) {
  int status = 0;
  pid_t found = 0;
  do {
    found = ::waitpid(child, &status, WNOHANG);
  } while (found < 0 && errno == EINTR);
  if (found == 0) return std::nullopt;
  if (found < 0) return 127;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Owns the redirections and the attributes of a program to be started.
class Setting {
 public:
  Setting(std::FILE* output, std::FILE* errors, const sigset_t& signals) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, ::fileno(output), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, ::fileno(errors), STDERR_FILENO);
    ::posix_spawnattr_init(&attributes_);
    // In a session of its own it can be killed with its children, and has no terminal to ask for passwords.
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// A program that was started.
class Running {
 public:
  Running(std::span<const std::string> arguments, const sigset_t& signals, std::optional<Seconds> limit)
      : output_(temporary_file()), errors_(temporary_file()) {
    if (limit) {
      deadline_ = Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit->value));
    }
    const Setting setting(output_.get(), errors_.get(), signals);
    const std::vector<char*> argv = argv_of(arguments);
    const int failure =
        ::posix_spawnp(&child_, argv[0], setting.actions(), setting.attributes(), argv.data(), environ);
    if (failure == 0) return;
    child_ = 0;
    result_ = {127, "", fmt::format("cannot run '{}': {}", arguments[0], std::strerror(failure)), false};
  }
  Running(Running&&) = delete;
  ~Running() {
    if (child_ != 0) ::kill(-child_, SIGKILL);
  }

  Clock::time_point deadline() const { return deadline_; }
  void expire() { deadline_ = std::min(deadline_, Clock::now()); }

  /// Whether it has ended. Once its time is over it is asked to end, and a little later it must; one that
  /// sleeps inside of a driver does not even then, and is left behind.
  bool ended() {
    constexpr std::array kSignals{SIGTERM, SIGKILL};
    constexpr std::chrono::seconds kGrace{3};
    if (child_ == 0 || has_exited()) return true;
    if (Clock::now() < deadline_) return false;
    result_.timed_out = true;
    deadline_ = Clock::now() + kGrace;
    if (signals_sent_ == kSignals.size()) {
      collect(128 + SIGKILL);
      return true;
    }
    ::kill(-child_, kSignals[signals_sent_++]);
    return false;
  }

  /// What it gave; it has ended.
  ProcessResult take() { return std::move(result_); }

 private:
  bool has_exited() {
    const std::optional<int> exit_code = exit_code_of(child_);
    if (!exit_code) return false;
    if (result_.timed_out) ::kill(-child_, SIGKILL);  // what it has left
    collect(*exit_code);
    return true;
  }

  void collect(int exit_code) {
    result_.exit_code = exit_code;
    result_.output = content(output_.get());
    result_.errors = content(errors_.get());
    child_ = 0;
  }

  File output_;
  File errors_;
  Clock::time_point deadline_ = Clock::time_point::max();
  pid_t child_ = 0;  // 0: it has ended
  std::size_t signals_sent_ = 0;
  ProcessResult result_;
};

/// Lets a signal take the effect that it has without us, which is mostly our end.
[[noreturn]] void pass_on(int signal_number) {
  ::kill(::getpid(), signal_number);
  throw Error(ExitCode::internal, fmt::format("interrupted by signal {}", signal_number));
}

}  // namespace

std::vector<ProcessResult> run_processes(std::span<const std::vector<std::string>> programs,
                                         std::optional<Seconds> limit) {
  constexpr std::chrono::seconds kLongestWait{1};
  std::vector<ProcessResult> results(programs.size());
  std::vector<std::pair<std::size_t, std::unique_ptr<Running>>> running;
  int interrupted = 0;
  {
    const HeldSignals signals;
    std::size_t started = 0;
    while (!running.empty() || (started < programs.size() && interrupted == 0)) {
      while (started < programs.size() && running.size() < kMostAtOnce && interrupted == 0) {
        running.emplace_back(started, std::make_unique<Running>(programs[started], signals.before(), limit));
        ++started;
      }
      std::erase_if(running, [&](auto& entry) {
        if (!entry.second->ended()) return false;
        results[entry.first] = entry.second->take();
        return true;
      });
      if (running.empty()) continue;
      Clock::time_point wake = Clock::now() + kLongestWait;
      for (const auto& [index, program] : running) wake = std::min(wake, program->deadline());
      const int signal_number = signals.next(wake - Clock::now()).si_signo;
      if (signal_number == 0 || signal_number == SIGCHLD) continue;
      interrupted = signal_number;
      for (const auto& [index, program] : running) program->expire();
    }
  }
  if (interrupted != 0) pass_on(interrupted);
  return results;
}

ProcessResult run_process(std::span<const std::string> arguments) {
  const std::vector<std::string> program(arguments.begin(), arguments.end());
  return std::move(run_processes(std::span(&program, 1), std::nullopt).front());
}

int run_in_foreground(std::span<const std::string> arguments) {
  std::fflush(nullptr);
  int interrupted = 0;
  std::optional<int> exit_code;
  {
    const HeldSignals signals;
    const std::vector<char*> argv = argv_of(arguments);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setsigmask(&attributes, &signals.before());
    pid_t child = 0;
    const int failure = ::posix_spawnp(&child, argv[0], nullptr, &attributes, argv.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    if (failure != 0) {
      throw Error(ExitCode::not_available, fmt::format("cannot run '{}': {}; mend PATH, or name another",
                                                       arguments[0], std::strerror(failure)));
    }
    while (!(exit_code = exit_code_of(child))) {
      const siginfo_t signal = signals.next(std::chrono::seconds(1));
      if (signal.si_signo == 0 || signal.si_signo == SIGCHLD) continue;
      interrupted = signal.si_signo;
      // The terminal sends its own to all of the foreground, and MPI launchers take a second one for
      // impatience.
      if (signal.si_code != SI_KERNEL) ::kill(child, signal.si_signo);
    }
  }
  if (interrupted != 0) pass_on(interrupted);
  return *exit_code;
}

}  // namespace polyring
