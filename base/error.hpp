// What can go wrong, and the exit code that says so.
//
// An Error reports a user's mistake or a failing environment: one sentence with the remedy, and the exit
// code. An assertion reports a bug in Polyring.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace polyring {

enum class ExitCode {
  ok = 0,
  internal = 1,
  cuda = 2,
  nccl = 3,
  timeout = 4,
  not_available = 5,  // no GPU, no root, no such library here
  usage = 6,          // invalid usage or input
  wrong_result = 7,
  below_threshold = 8,
  inconclusive = 9,
  mpi = 10,
  output = 11,  // a result could not be written: a full disk, a closed pipe
};

class Error : public std::runtime_error {
 public:
  /// What the sentence quotes may be hostile: what() is its printable_line().
  Error(ExitCode code, const std::string& sentence);
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// One that all ranks of a group throw at the same place, with the same sentence: one of them says it.
class AgreedError final : public Error {
 public:
  using Error::Error;
};

/// Throws Error(ExitCode::usage). The sentence says what was wrong and what to do instead.
template <typename... Args>
[[noreturn]] void usage_error(fmt::format_string<Args...> sentence, Args&&... args) {
  throw Error(ExitCode::usage, fmt::format(sentence, std::forward<Args>(args)...));
}

}  // namespace polyring
