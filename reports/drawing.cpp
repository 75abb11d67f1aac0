#include "reports/drawing.hpp"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/process.hpp"

namespace polyring {
namespace {

constexpr int kNotStarted = 127;

std::string python() {
  const char* chosen = std::getenv("POLYRING_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : POLYRING_DEFAULT_PYTHON;
}

/// Where an installed program has its scripts beside it, those; else those of the sources that it was built
/// from.
std::filesystem::path scripts() {
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::filesystem::path installed = program.parent_path() / POLYRING_INSTALLED_SCRIPTS;
  return std::filesystem::is_directory(installed, unknown) ? installed : POLYRING_SCRIPTS;
}

/// The script's last sentence, without its name before it.
std::string reason_of(std::string_view script, const std::string& text) {
  const std::size_t end = text.find_last_not_of("\r\n");
  if (end == std::string::npos) return "it gave no reason";
  const std::size_t begin = text.find_last_of('\n', end);
  const std::size_t first = begin == std::string::npos ? 0 : begin + 1;
  const std::string line = text.substr(first, end + 1 - first);
  const std::string name = fmt::format("{}: ", script);
  return line.starts_with(name) ? line.substr(name.size()) : line;
}

/// The scripts use polyring's exit codes for what they know of; anything else is a bug in them.
ExitCode code_of(int exit_code) {
  if (exit_code == kNotStarted) return ExitCode::not_available;
  for (const ExitCode known : {ExitCode::ok, ExitCode::not_available, ExitCode::usage, ExitCode::output}) {
    if (exit_code == static_cast<int>(known)) return known;
  }
  return ExitCode::internal;
}

}  // namespace

Drawing run_drawing(std::string_view script, std::span<const std::string> arguments) {
  const std::string interpreter = python();
  if (interpreter.empty()) {
    return {ExitCode::not_available, "",
            "no Python with matplotlib was found when polyring was built; install python3-matplotlib and "
            "name that Python in POLYRING_PYTHON"};
  }
  const std::filesystem::path path = scripts() / script;
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) {
    return {ExitCode::not_available, "",
            fmt::format("'{}' is not there; install polyring with scripts/install", path.string())};
  }
  std::vector<std::string> command{interpreter, path.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  ProcessResult result = run_process(command);
  return {code_of(result.exit_code), std::move(result.output),
          result.exit_code == 0 ? "" : reason_of(script, result.errors)};
}

}  // namespace polyring
