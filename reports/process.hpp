// Runs another program and collects what it prints.
#pragma once

#include <span>
#include <string>

namespace polyring {

struct ProcessResult {
  int exit_code = 0;  // 127 when the program could not be started, 128 + n when signal n ended it
  std::string output;
  std::string errors;
};

/// Runs `arguments[0]`, found on PATH, without a shell and with no input, and waits for its end.
ProcessResult run_process(std::span<const std::string> arguments);

}  // namespace polyring
