#include "bench/cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/printable.hpp"

namespace polyring {
namespace {

const std::string kNewLine = "\r\x1b[K";

/// Without an error where the terminal has gone: progress is nothing to fail for.
void put(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

Progress::Progress(bool wanted) : on_(wanted && isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::show(std::string_view what) {
  if (!on_) return;
  put(fmt::format("{}{}", kNewLine, printable_line(what)));
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  put(kNewLine);
  shown_ = false;
}

}  // namespace polyring
