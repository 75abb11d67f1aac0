// Runs other programs: collects what they print, or leaves them the terminal.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace polyring {

struct ProcessResult {
  int exit_code = 0;  // 127 when the program could not be started, 128 + n when signal n ended it
  std::string output;
  std::string errors;
  bool timed_out = false;  // it did not end in time, and was ended
  bool too_long = false;   // it printed more than kMostPrinted, and was ended
};

/// Bytes of `output`, and of `errors`: more than any answer that is asked for here.
inline constexpr std::size_t kMostPrinted = std::size_t{16} << 20;

/// Runs `arguments[0]`, found on PATH, without a shell, a terminal and input, and waits for its end. When
/// SIGINT, SIGTERM or SIGHUP comes meanwhile, the program is ended with all that it started (SIGTERM, and
/// SIGKILL 3 s later), and then the signal takes its effect.
ProcessResult run_process(std::span<const std::string> arguments);

/// The same with several programs, up to 64 at one time, each of which is ended in that way when it runs for
/// longer than `limit`, or prints too much. Fewer at one time where few files may be open.
/// Error (not_available) when even one needs more open files than are allowed.
std::vector<ProcessResult> run_processes(std::span<const std::vector<std::string>> programs,
                                         std::optional<Seconds> limit);

/// Runs `arguments[0]`, found on PATH, with our input, output and terminal, and returns its exit code, or
/// 128 + n when signal n ended it. SIGINT, SIGTERM and SIGHUP that others send to us are passed on to it, and
/// when it has ended take their effect here too: an interrupted program is no success, whatever it says.
/// Error (not_available) when it cannot be started.
int run_in_foreground(std::span<const std::string> arguments);

}  // namespace polyring
