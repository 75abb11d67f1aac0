// Runs other programs and collects what they print, or lets them use the terminal.
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
  bool timed_out = false;  // it was ended because its time was over
  bool too_long = false;   // it was ended because it printed more than kMostPrinted
};

/// The most bytes of `output`, and of `errors`. No answer that Polyring asks for is as long.
inline constexpr std::size_t kMostPrinted = std::size_t{16} << 20;

/// Runs `arguments[0]`, found on PATH, and waits for its end. It gets no shell, no terminal and no input. If
/// this process gets SIGINT, SIGTERM or SIGHUP meanwhile, the program and its children get SIGTERM, and
/// SIGKILL 3 s later; then the signal takes effect here.
ProcessResult run_process(std::span<const std::string> arguments);

/// Runs several programs in the same way, up to 64 at a time, fewer if the limit on open files is low. Ends
/// each that runs for longer than `limit` or prints too much. Throws Error(ExitCode::not_available) when the
/// limit on open files is too low for even one.
std::vector<ProcessResult> run_processes(std::span<const std::vector<std::string>> programs,
                                         std::optional<Seconds> limit);

/// Runs `arguments[0]`, found on PATH, with this process's input, output and terminal. Returns its exit code,
/// or 128 + n when signal n ended it. Passes SIGINT, SIGTERM and SIGHUP on to it; after its end they take
/// effect here too, so an interrupted program never counts as a success. Throws
/// Error(ExitCode::not_available) when it cannot be started.
int run_in_foreground(std::span<const std::string> arguments);

}  // namespace polyring
