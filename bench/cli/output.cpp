#include "bench/cli/output.hpp"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/printable.hpp"

namespace polyring {
namespace {

/// Of standard output: why it could not be written, an errno; 0 while it can.
std::atomic<int> failure = 0;

std::atomic<bool> results_alone = false;

/// Returns errno, or 0 when all is written. A terminal or a pipe that somebody else made non-blocking is
/// waited for.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd awaited{descriptor, POLLOUT, 0};
      ::poll(&awaited, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

void print_out(std::string_view text) {
  if (results_alone) return print_err(text);
  print_result(printable(text));
}

void keep_output_for_results() { results_alone = true; }

void print_result(std::string_view text) {
  if (failure == 0) failure = write_all(STDOUT_FILENO, text);
}

void print_err(std::string_view text) { write_all(STDERR_FILENO, printable(text)); }

void warn(std::string_view sentence) { print_err("polyring: {}\n", printable_line(sentence)); }

bool output_failed() { return failure != 0; }

ExitCode finish_output(ExitCode code) {
  // Some file systems on a network say only when a file is closed that it has no room.
  const int copy = ::dup(STDOUT_FILENO);
  if (failure == 0 && copy >= 0 && ::close(copy) != 0 && errno != EINTR) failure = errno;
  if (failure == 0) return code;
  static std::atomic<bool> said = false;
  if (failure != EPIPE && !said.exchange(true)) {
    warn("cannot write to standard output: {}; check its disk, or send it elsewhere, and run this again",
         std::strerror(failure));
  }
  return code == ExitCode::ok ? ExitCode::output : code;
}

}  // namespace polyring
