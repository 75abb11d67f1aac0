#include "base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
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
#include <utility>

#include "base/children.hpp"
#include "base/error.hpp"

namespace polyring {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void no_more_files(int failure) {
  throw Error(ExitCode::not_available,
              fmt::format("cannot run other programs: {}; allow more open files, as with ulimit -n 1024",
                          std::strerror(failure)));
}

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int descriptor = -1) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

/// What a program prints, through a pipe.
class Printed {
 public:
  Printed() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) no_more_files(errno);
    from_ = Descriptor(ends[0]);
    to_ = Descriptor(ends[1]);
    ::fcntl(from_.get(), F_SETFL, O_NONBLOCK);
  }

  int program_end() const { return to_.get(); }
  /// Once the program has its own.
  void close_program_end() { to_ = Descriptor(); }

  /// To be waited for; -1 when no more will come.
  int our_end() const { return from_.get(); }

  /// Takes what there is. Returns false when it is too much.
  bool read() {
    std::array<char, 1 << 16> block;
    while (from_.open()) {
      const ssize_t bytes = ::read(from_.get(), block.data(), block.size());
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0 && errno == EAGAIN) return true;
      if (bytes <= 0) {
        from_ = Descriptor();
        return true;
      }
      const std::size_t room = kMostPrinted - text_.size();
      text_.append(block.data(), std::min(room, static_cast<std::size_t>(bytes)));
      if (static_cast<std::size_t>(bytes) <= room) continue;
      from_ = Descriptor();
      return false;
    }
    return true;
  }

  std::string take() { return std::move(text_); }

 private:
  Descriptor from_;
  Descriptor to_;
  std::string text_;
};

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
    queue_ = Descriptor(::signalfd(-1, &held_, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!queue_.open()) no_more_files(errno);
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  const sigset_t& before() const { return before_; }

  struct Signal {
    int number = 0;
    bool from_terminal = false;
  };

  /// The next of them; its number is 0 when none comes within `limit`, or something else comes from these
  /// descriptors before it.
  Signal next(Clock::duration limit, std::vector<int> descriptors = {}) const {
    std::vector<pollfd> awaited{{queue_.get(), POLLIN, 0}};
    for (const int descriptor : descriptors) awaited.push_back({descriptor, POLLIN, 0});
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::max(limit, Clock::duration{}));
    ::poll(awaited.data(), awaited.size(), static_cast<int>(wait.count()));
    signalfd_siginfo signal{};
    if (::read(queue_.get(), &signal, sizeof signal) != sizeof signal) return {};
    return {static_cast<int>(signal.ssi_signo), signal.ssi_code == SI_KERNEL};
  }

 private:
  WaitableChildren waitable_;
  sigset_t held_;
  sigset_t before_;
  Descriptor queue_;
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
  /// In the foreground.
  explicit Setting(const sigset_t& signals) : Setting(signals, 0) {}
  /// In a session of its own it can be killed with its children, and has no terminal to ask for passwords.
  Setting(const Printed& output, const Printed& errors, const sigset_t& signals)
      : Setting(signals, POSIX_SPAWN_SETSID) {
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output.program_end(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, errors.program_end(), STDERR_FILENO);
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
  Setting(const sigset_t& signals, int flags) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setflags(&attributes_,
                               static_cast<short>(flags | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
    // We may ignore these; other programs count on them.
    sigset_t usual;
    sigemptyset(&usual);
    for (const int signal_number : {SIGPIPE, SIGXFSZ, SIGCHLD}) sigaddset(&usual, signal_number);
    ::posix_spawnattr_setsigdefault(&attributes_, &usual);
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// A program that was started.
class Running {
 public:
  Running(std::span<const std::string> arguments, const sigset_t& signals, std::optional<Seconds> limit) {
    if (limit) {
      deadline_ = Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit->value));
    }
    const Setting setting(output_, errors_, signals);
    const std::vector<char*> argv = argv_of(arguments);
    const int failure =
        ::posix_spawnp(&child_, argv[0], setting.actions(), setting.attributes(), argv.data(), environ);
    output_.close_program_end();
    errors_.close_program_end();
    if (failure == 0) return;
    child_ = 0;
    result_.exit_code = 127;
    result_.errors = fmt::format("cannot run '{}': {}", arguments[0], std::strerror(failure));
  }
  Running(Running&&) = delete;
  ~Running() {
    if (child_ != 0) ::kill(-child_, SIGKILL);
  }

  Clock::time_point deadline() const { return deadline_; }
  void expire() { deadline_ = std::min(deadline_, Clock::now()); }

  /// Where what it prints comes from.
  void add_descriptors(std::vector<int>& descriptors) const {
    for (const Printed* printed : {&output_, &errors_}) {
      if (printed->our_end() >= 0) descriptors.push_back(printed->our_end());
    }
  }

  /// Whether it has ended. Once its time is over it is asked to end, and a little later it must; one that
  /// sleeps inside of a driver does not even then, and is left behind.
  bool ended() {
    constexpr std::array kSignals{SIGTERM, SIGKILL};
    constexpr std::chrono::seconds kGrace{3};
    if (child_ == 0) return true;
    read();
    if (has_exited()) return true;
    if (Clock::now() < deadline_) return false;
    result_.timed_out = !result_.too_long;
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
    if (signals_sent_ > 0) ::kill(-child_, SIGKILL);  // what it has left
    collect(*exit_code);
    return true;
  }

  void read() {
    if (output_.read() && errors_.read()) return;
    result_.too_long = true;
    expire();
  }

  void collect(int exit_code) {
    read();
    result_.exit_code = exit_code;
    result_.output = output_.take();
    result_.errors = errors_.take();
    child_ = 0;
  }

  Printed output_;
  Printed errors_;
  Clock::time_point deadline_ = Clock::time_point::max();
  pid_t child_ = 0;  // 0: it has ended
  std::size_t signals_sent_ = 0;
  ProcessResult result_;
};

/// How many programs may run at one time: each takes two of our open files, and two more while it starts.
std::size_t most_at_once() {
  constexpr std::size_t kMost = 64;
  constexpr rlim_t kOthers = 32;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= kOthers + 2 * kMost) return kMost;
  return files.rlim_cur <= kOthers + 2 ? 1 : static_cast<std::size_t>((files.rlim_cur - kOthers) / 2);
}

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
    const std::size_t most = most_at_once();
    std::size_t started = 0;
    while (!running.empty() || (started < programs.size() && interrupted == 0)) {
      while (started < programs.size() && running.size() < most && interrupted == 0) {
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
      std::vector<int> descriptors;
      for (const auto& [index, program] : running) {
        wake = std::min(wake, program->deadline());
        program->add_descriptors(descriptors);
      }
      const int signal_number = signals.next(wake - Clock::now(), std::move(descriptors)).number;
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
    const Setting setting(signals.before());
    pid_t child = 0;
    const int failure =
        ::posix_spawnp(&child, argv[0], setting.actions(), setting.attributes(), argv.data(), environ);
    if (failure != 0) {
      throw Error(ExitCode::not_available, fmt::format("cannot run '{}': {}; mend PATH, or name another",
                                                       arguments[0], std::strerror(failure)));
    }
    while (!(exit_code = exit_code_of(child))) {
      const HeldSignals::Signal signal = signals.next(std::chrono::seconds(1));
      if (signal.number == 0 || signal.number == SIGCHLD) continue;
      interrupted = signal.number;
      // The terminal sends its own to all of the foreground, and MPI launchers take a second one for
      // impatience.
      if (!signal.from_terminal) ::kill(child, signal.number);
    }
  }
  if (interrupted != 0) pass_on(interrupted);
  return *exit_code;
}

}  // namespace polyring
